"""``calque check`` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Calque


def test_check(calque: Calque, folder: Path) -> None:
    """Rows, exit codes, a document for programs; nothing is changed."""
    for name, content in {"one/a": "x", "one/b": "y", "two/a": "x", "two/b": "z"}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)
    assert calque("check", "one/", "one/").returncode == 0
    different = calque("check", "one/", "two/", "--download")
    assert different.returncode == 1
    assert different.stdout == "* b  (download)\n"
    told = json.loads(calque("check", "one/", "two/", "--by", "checksum", "-a", "--json").stdout)
    assert [(row["path"], row["sign"]) for row in told["rows"]] == [("a", "="), ("b", "*")]
    assert calque("check", "one/", "two/", "--by", "checksum", "--exclude", "b").returncode == 0
    assert calque("check", "one/", "nowhere/").returncode == 1
    assert calque("check", "one/", "two/", "--against", "r.jsonl").returncode == 2
    calque("cp", "-r", "one/", "three/", "--report", "r.jsonl")
    unsure = calque("check", "--against", "r.jsonl", "three/")
    assert unsure.returncode == 3, unsure.stderr
