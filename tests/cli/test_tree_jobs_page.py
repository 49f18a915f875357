"""Every command that docs/tree-jobs.md shows is run."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tests.cli.conftest import Calque
from tests.cli.test_docs import LINE

PAGE = Path(__file__).parents[2] / "docs" / "tree-jobs.md"


def test_the_page_is_true(calque: Calque, folder: Path) -> None:
    """In order, in one folder, with the exit codes the page tells."""
    for name in ("site/index.html", "site/css/main.css", "site/drafts/new.html"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    blocks = re.findall(r"```console\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    commands = [found for block in blocks for found in LINE.findall(block)]
    assert len(commands) == 9
    for command, code in commands:
        done = calque(*shlex.split(command))
        assert done.returncode == int(code or 0), (command, done.stderr)
