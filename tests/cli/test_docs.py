"""Every command that docs/cli-objects.md and docs/trees.md show is run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

from tests.cli.conftest import Calque

PAGE = Path(__file__).parents[2] / "docs" / "cli-objects.md"
TREES = PAGE.with_name("trees.md")
LINE = re.compile(r"^\$ calque (.*?)(?:\s+# exit code (\d).*)?$", re.MULTILINE)


def test_the_page_is_true(calque: Calque, folder: Path) -> None:
    """In order, in one folder, with the exit codes the page tells."""
    (folder / "report.csv").write_text("id,amount\n1,10\n")
    (folder / "big.bin").write_bytes(b"x" * 1_000_000)
    blocks = re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    commands = [found for block in blocks for found in LINE.findall(block)]
    assert len(commands) == 10
    for command, code in commands:
        done = calque(*shlex.split(command))
        assert done.returncode == int(code or 0), (command, done.stderr)


def test_every_option_is_told(calque: Calque) -> None:
    """What ``calque cp --help`` lists stands in the page's table too."""
    told = PAGE.read_text(encoding="utf-8")
    options = set(re.findall(r"--[a-z][a-z-]+", calque("cp", "--help").stdout))
    assert options - {"--help", "--json"} <= set(re.findall(r"--[a-z][a-z-]+", told))


def test_the_page_of_trees_is_true(
    calque: Calque, folder: Path, environment: dict[str, str]
) -> None:
    """Its commands in order, then its Python: what it says of their outcome holds."""
    for name in ("index.html", "css/a.css", "img/b.png", "c.tmp"):
        file = folder / "site" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    told = TREES.read_text(encoding="utf-8")
    commands = LINE.findall(re.findall(r"```console\n(.*?)```", told, re.DOTALL)[0])
    assert len(commands) == 8
    for command, code in commands:
        done = calque(*shlex.split(command.partition(" #")[0]))
        assert done.returncode == int(code or 0), (command, done.stderr)
    program = re.findall(r"```python\n(.*?)```", told, re.DOTALL)[0]
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=150,
    )
    expected = re.findall(r"# → (.*)", program)
    assert ran.stdout.splitlines() == expected, ran.stderr


def test_every_option_of_trees_is_told(calque: Calque) -> None:
    """What ``calque sync --help`` lists stands on one of the two pages."""
    told = TREES.read_text(encoding="utf-8") + PAGE.read_text(encoding="utf-8")
    options = set(re.findall(r"--[a-z][a-z-]+", calque("sync", "--help").stdout))
    assert options - {"--help", "--json"} <= set(re.findall(r"--[a-z][a-z-]+", told))
