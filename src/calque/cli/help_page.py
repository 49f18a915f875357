"""The first page of help, as plain text.

Every newcomer asks for it, and Rich takes longer to import than all the rest of it. Commands
explain themselves by Rich.
"""

from __future__ import annotations

import inspect
import re
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence

_WIDEST = 100


def help_page(
    usage: str, about: str, options: Sequence[tuple[str, str]], commands: Mapping[str, str]
) -> str:
    """Usage, what it is about, options and commands, in as many columns as there are."""
    width = min(shutil.get_terminal_size().columns, _WIDEST) - 1
    parts = [f"{_bold('Usage:')} {usage}", *_paragraphs(about, width)]
    parts += [f"{_bold('Options:')}\n{_columns(options, width)}"]
    parts += [f"{_bold('Commands:')}\n{_columns([*commands.items()], width)}"]
    # What is a list in the text stays together.
    return re.sub(r"\n\n- ", "\n- ", "\n\n".join(parts)) + "\n"


def _paragraphs(about: str, width: int) -> list[str]:
    found = []
    for part in re.split(r"\n\s*\n", inspect.cleandoc(about)):
        text = " ".join(part.split())
        indent = "    " if text.startswith("- ") else ""
        wrapped = textwrap.fill(
            text, width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
        )
        found.append(re.sub(r"`([^`]*)`", lambda each: _bold(each[1]), wrapped))
    return found


def _columns(rows: Sequence[tuple[str, str]], width: int) -> str:
    left = max(len(name) for name, _ in rows) + 2
    lines = []
    for name, text in rows:
        first, *rest = textwrap.wrap(text, max(width - left - 2, 20)) or [""]
        lines.append(f"  {_bold(name)}{' ' * (left - len(name))}{first}".rstrip())
        lines += [f"  {' ' * left}{each}" for each in rest]
    return "\n".join(lines)


def _bold(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m" if sys.stdout.isatty() else text
