"""The commands that look after a store: what they print, what they leave, their exit codes."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from typer.testing import CliRunner

from calque.cli.main import app
from tests.store.upkeep.kept_store import BUCKET, KeptStore

COMMANDS = ("gc", "audit", "repair", "expire", "tally", "fsck")


def run(*arguments: str, expect: int = 0) -> Any:
    done = CliRunner().invoke(app, ["store", *arguments, "--json"])
    assert done.exit_code == expect, done.output
    return json.loads(done.stdout)


def test_a_dry_run_changes_nothing(plain: KeptStore) -> None:
    """Not a row, and not a piece."""
    plain.upload("a")
    plain.lay_garbage()
    folder = str(plain.store.folder)
    before = _files(plain)
    for command in COMMANDS:
        run(command, folder, "--dry-run")
    assert _files(plain) == before
    assert run("gc", folder, "--dry-run", "--window", "0", "--many")["trashed"] > 0
    assert _files(plain) == before


def _files(kept: KeptStore) -> dict[str, int]:
    return {
        str(path): path.stat().st_mtime_ns
        for path in sorted(kept.store.folder.glob("disks/**/*"))
        if path.is_file()
    }


def test_gc_by_command(plain: KeptStore) -> None:
    """Trash and restore; a node that is away is told by the exit code, and waits."""
    plain.upload("a")
    plain.lay_garbage(3)
    folder = str(plain.store.folder)
    report = run("gc", folder, "--window", "0", "--many")
    assert 0 < report["trashed"] <= 18
    assert report["scan"]["rows"] == 3
    restored = run("gc", folder, "--restore")
    assert sum(each["restored"] for each in restored) == report["trashed"]
    plain.lose_node(0)
    report = run("gc", folder, "--window", "0", "--many", expect=3)
    assert [each["node"] for each in report["nodes"] if each["error"]] == [plain.node(0).name]
    done = CliRunner().invoke(app, ["store", "gc", folder])
    assert "trashed" in done.stdout
    assert "snapshot" in done.stderr
    plain.read_all()


def test_audit_by_command(plain: KeptStore) -> None:
    """Exit code 1 when a piece is wrong."""
    plain.upload("a")
    folder = str(plain.store.folder)
    assert run("audit", folder, "--slots", "9")["segments"] == 3
    for path in plain.store.folder.glob("disks/*/pieces/*/*/*"):
        path.write_bytes(b"rot")
    report = run("audit", folder, "--slots", "9", expect=1)
    assert sum(each["wrong"] for each in report["nodes"]) == 12


def test_expire_by_command(plain: KeptStore) -> None:
    """What a dry run counts is what goes."""
    plain.project.upload(BUCKET, "k", bytes(900), expires=plain.clock.now() + timedelta(seconds=1))
    plain.contents.clear()
    folder = str(plain.store.folder)
    planned = run("expire", folder, "--dry-run")
    while not planned["expired_objects"]:  # by the command's own clock
        planned = run("expire", folder, "--dry-run")
    assert run("expire", folder)["expired_objects"] == planned["expired_objects"] == 1
    assert run("expire", folder, "--dry-run")["expired_objects"] == 0


@pytest.mark.parametrize("command", [*COMMANDS, "exit"])
def test_wrong_folders_are_told(command: str, plain: KeptStore) -> None:
    """A folder without a store, and an engine that is none."""
    nowhere = str(plain.store.folder / "disks")
    node = ["x"] if command == "exit" else []
    done = CliRunner().invoke(app, ["store", command, nowhere, *node])
    assert done.exit_code != 0
    if command != "expire":
        done = CliRunner().invoke(
            app, ["store", command, str(plain.store.folder), *node, "--engine", "steam"]
        )
        assert done.exit_code != 0
        assert "steam" in str(done.exception)
