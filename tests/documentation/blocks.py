"""The blocks of code of a page, and what their fences mean.

``console`` has commands after ``$ ``; other lines are what they print (``…`` stands for anything),
and ``# exit code 1`` behind a command says how it ends. ``python`` is run, all blocks of a page in
one namespace; what ``# → 3`` says is printed. A block with a ``title="a/b.csv"`` is that file.
``toml`` without a title is checked as settings, ``sql`` as a statement, ``yaml`` is read. ``text``
is a drawing, or what a program prints, and nothing to run. There is no other kind.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
KINDS = {"console", "python", "toml", "sql", "yaml", "text", "csv", "json", "ini"}
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block: its kind, the file that it is, its text, and its first line's number."""

    kind: str
    title: str | None
    text: str
    line: int


@dataclass(slots=True)
class Command:
    """A command of a console: its words, how it ends, what is shown of what it prints."""

    words: str
    code: int = 0
    shown: list[str] = field(default_factory=list)


def pages() -> list[Path]:
    """All pages for users; decisions are for those who work on calque."""
    found = (ROOT / "docs").rglob("*.md")
    return sorted(path for path in found if path.parent.name != "decisions")


def blocks_of(page: Path) -> list[Block]:
    """The blocks of a page in their order."""
    text = page.read_text(encoding="utf-8")
    blocks = []
    for found in FENCE.finditer(text):
        kind, _, rest = found[1].partition(" ")
        title = re.search(r'title="([^"]+)"', rest)
        line = text.count("\n", 0, found.start()) + 2
        blocks.append(Block(kind, title[1] if title else None, found[2], line))
    return blocks


def commands_of(block: Block) -> Iterator[Command]:
    """The commands of a console block; a line that ends in a backslash goes on."""
    command: Command | None = None
    for line in block.text.replace("\\\n", " ").splitlines():
        if line.startswith("$ "):
            if command:
                yield command
            code = re.search(r"\s# exit code (\d+)", line)
            words = re.split(r"\s+# ", line[2:])[0]
            command = Command(re.sub(r"\s+", " ", words).strip(), int(code[1]) if code else 0)
        elif command and line.strip():
            command.shown.append(line)
    if command:
        yield command
