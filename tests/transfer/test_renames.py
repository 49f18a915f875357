"""Renames: what the target has under another name is moved there, and not sent again."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from calque.errors import InvalidInput, Unsupported
from calque.operator import Operator
from calque.transfer.api import sync_tree
from calque.transfer.model import Row
from tests.command import run_command_text
from tests.transfer.conftest import MakeTree, files_of, objects_of

BIG = os.urandom(40_000)
FILES = {"old/a": b"aaaa" * 100, "old/b": BIG, "same": b"same"}


def rename(source: Path) -> dict[str, bytes]:
    (source / "new").mkdir()
    (source / "old" / "a").rename(source / "new" / "first")
    (source / "old" / "b").rename(source / "new" / "second")
    (source / "old").rmdir()
    return files_of(source)


def rows_of(rows: list[Row]) -> dict[str, tuple[str, str, str | None]]:
    return {row.path: (row.outcome, row.rule, row.route) for row in rows}


def test_into_s3(make_tree: MakeTree, s3: Operator) -> None:
    """Copied inside the service from the old name, which is deleted last; no byte is sent."""
    source = make_tree("source", FILES)
    sync_tree(f"{source}/", s3)
    wanted = rename(source)
    told: list[Row] = []
    sync_tree(f"{source}/", s3, delete=True, track_renames=True, dry_run=True, on_event=told.append)
    rows: list[Row] = []
    report = sync_tree(f"{source}/", s3, delete=True, track_renames=True, on_event=rows.append)
    assert report.ok, report.problems
    assert objects_of(s3) == wanted
    assert rows_of(rows) == {
        "new/first": ("copied", "renamed", "server-side"),
        "new/second": ("copied", "renamed", "server-side"),
        "same": ("up to date", "identity", None),
        "old/a": ("deleted", "only at the target", None),
        "old/b": ("deleted", "only at the target", None),
    }
    assert {(row.path, row.outcome, row.rule) for row in told} == {
        (row.path, row.outcome, row.rule) for row in rows
    }
    assert "'old/a'" in next(row.why for row in rows if row.path == "new/first")
    again = sync_tree(f"{source}/", s3, delete=True, track_renames=True)
    assert again.totals.of("up to date").objects == 3


def test_out_of_s3_and_between_folders(make_tree: MakeTree, s3: Operator, tmp_path: Path) -> None:
    """Local files are hashed where their size is one that went; times are those of the source."""
    source = make_tree("source", FILES)
    sync_tree(f"{source}/", s3)
    there = tmp_path / "there"
    for origin in (s3, f"{source}/"):
        sync_tree(origin, there, delete=True)
        if origin is s3:
            s3.copy("old/a", "new/first")
            s3.delete("old/a")
        else:
            (source / "old" / "b").rename(source / "moved")
        rows: list[Row] = []
        report = sync_tree(origin, there, delete=True, track_renames=True, on_event=rows.append)
        assert report.ok, report.problems
        assert [row.route for row in rows if row.rule == "renamed"] == ["server-side"]
    assert files_of(there) == files_of(source)
    moved = (there / "moved").stat().st_mtime_ns
    assert moved == (source / "moved").stat().st_mtime_ns


def test_two_candidates(make_tree: MakeTree, s3: Operator) -> None:
    """The smaller name is taken, and that is told; each is taken once."""
    source = make_tree("source", {"x": BIG})
    for name in ("gone-2", "gone-1"):
        s3.write(name, BIG)
    rows: list[Row] = []
    report = sync_tree(
        f"{source}/",
        s3,
        delete=True,
        track_renames=True,
        max_delete="100%",
        on_event=rows.append,
    )
    assert report.ok, report.problems
    (why,) = (row.why for row in rows if row.path == "x")
    assert "'gone-1'" in why
    assert "smallest of 2" in why
    assert objects_of(s3) == {"x": BIG}


def test_never_across_a_filter(make_tree: MakeTree, s3: Operator) -> None:
    """What is excluded at the target is neither deleted nor taken for a rename."""
    source = make_tree("source", {"x": BIG})
    s3.write("kept/old", BIG)
    rows: list[Row] = []
    sync_tree(
        f"{source}/",
        s3,
        delete=True,
        track_renames=True,
        exclude=["kept/"],
        on_event=rows.append,
    )
    assert rows_of(rows) == {"x": ("copied", "new", "through the client")}
    assert objects_of(s3) == {"x": BIG, "kept/old": BIG}


def test_never_across_a_limit(make_tree: MakeTree) -> None:
    """Nor what is left out by its age."""
    source, target = make_tree("source", {"x": BIG}), make_tree("target", {"old": BIG})
    os.utime(target / "old", (10**9, 10**9))
    rows: list[Row] = []
    sync_tree(
        f"{source}/",
        target,
        delete=True,
        track_renames=True,
        newer_than=datetime(2002, 1, 1, tzinfo=UTC),
        on_event=rows.append,
    )
    assert rows_of(rows) == {"x": ("copied", "new", "through the client")}
    assert files_of(target) == {"x": BIG, "old": BIG}


def test_each_is_taken_once(make_tree: MakeTree) -> None:
    """Two new ones with the bytes of one that goes: the first is that one, the second is new."""
    source, target = make_tree("source", {"x": BIG, "y": BIG}), make_tree("target", {"old": BIG})
    rows: list[Row] = []
    sync_tree(f"{source}/", target, delete=True, track_renames=True, on_event=rows.append)
    assert {row.path: row.rule for row in rows if row.outcome == "copied"} == {
        "x": "renamed",
        "y": "new",
    }
    assert files_of(target) == {"x": BIG, "y": BIG}


def test_same_size_is_not_enough(make_tree: MakeTree, s3: Operator) -> None:
    """Other bytes of the same size are copied from the source."""
    source = make_tree("source", {"x": BIG})
    s3.write("y", bytes(len(BIG)))
    rows: list[Row] = []
    sync_tree(f"{source}/", s3, delete=True, track_renames=True, max_delete=5, on_event=rows.append)
    assert rows_of(rows)["x"] == ("copied", "new", "through the client")
    assert objects_of(s3) == {"x": BIG}


def test_it_is_about_deletes(make_tree: MakeTree, tmp_path: Path) -> None:
    """Without deletes, and on Spark, it is refused before anything is written."""
    source = make_tree("source", FILES)
    with pytest.raises(InvalidInput, match="delete"):
        sync_tree(f"{source}/", tmp_path / "target", track_renames=True)
    with pytest.raises(Unsupported, match="Spark"):
        sync_tree(
            f"{source}/",
            tmp_path / "target",
            delete=True,
            track_renames=True,
            spark="local[1]",
            shared_fs=True,
        )
    assert not (tmp_path / "target").exists()


def test_from_the_command_line(make_tree: MakeTree, tmp_path: Path) -> None:
    """``calque sync --delete --track-renames``."""
    source, target = make_tree("source", FILES), tmp_path / "target"
    flags = ("--delete", "--track-renames", "--json", "--yes")
    assert run_command_text("sync", f"{source}/", f"{target}/").returncode == 0
    wanted = rename(source)
    done = run_command_text("sync", f"{source}/", f"{target}/", *flags)
    assert done.returncode == 0, done.stderr
    assert '"renamed": 2' in done.stdout
    assert files_of(target) == wanted
