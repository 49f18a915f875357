"""Every command that docs/cli-objects.md shows is run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tests.cli.conftest import Calque

PAGE = Path(__file__).parents[2] / "docs" / "cli-objects.md"
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
