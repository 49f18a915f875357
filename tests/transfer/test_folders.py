"""Empty folders, and the markers that stand for them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from calque.errors import Unsupported
from calque.operator import Operator
from calque.operator.options import WriteOptions
from calque.transfer.api import copy_tree, move_tree, remove_tree, sync_tree
from calque.transfer.model import Row
from calque.transfer.run import lister
from tests.transfer.conftest import MakeTree, files_of


def test_markers_of_folders_that_are_there_stay(make_tree: MakeTree) -> None:
    """A sync with delete keeps what it has made for folders, and removes those of others."""
    source = make_tree("source", {"f": b"1", "full/g": b"2"})
    (source / "empty").mkdir()
    memory = Operator.from_uri("memory://markers-stay")
    memory.service.write("full/", (), WriteOptions())
    memory.service.write("gone/", (), WriteOptions())
    for _ in range(2):
        assert sync_tree(f"{source}/", memory, delete=True, folders=True).ok
        keys = [entry.path for entry in memory.list()]
        assert keys == ["empty/", "f", "full/", "full/g"]


def test_a_source_of_folders_alone_deletes_nothing(make_tree: MakeTree) -> None:
    """Markers are no objects to copy: no more is deleted than for an empty source."""
    memory = Operator.from_uri("memory://markers-alone")
    memory.service.write("only/", (), WriteOptions())
    target = make_tree("target", {"a": b"1"})
    report = sync_tree(memory, target, delete=True)
    assert "nothing to copy" in report.error
    assert report.exit_code == 3
    assert files_of(target) == {"a": b"1"}


def test_a_folder_that_a_file_is_in_the_way_of(make_tree: MakeTree) -> None:
    """It is one failed entry; the rest is copied, and nothing is deleted."""
    source = make_tree("source", {"f": b"1", "z": b"2"})
    (source / "empty").mkdir()
    target = make_tree("target", {"empty": b"a file", "old": b"0"})
    report = sync_tree(f"{source}/", target, delete=True)
    assert [row.path for row in report.problems] == ["empty/"]
    assert report.exit_code == 3
    assert files_of(target) == {"empty": b"a file", "f": b"1", "old": b"0", "z": b"2"}


@pytest.mark.parametrize("folders", [False, True])
def test_a_dry_run_tells_folders_as_the_run_does(make_tree: MakeTree, folders: bool) -> None:
    """The same rows, and nothing is made."""
    source = make_tree("source", {"f": b"1"})
    (source / "empty").mkdir()
    memory = Operator.from_uri(f"memory://markers-dry-{folders}")
    told: list[list[tuple[str, str]]] = []
    for dry_run in (True, False):
        rows: list[Row] = []
        copy_tree(f"{source}/", memory, folders=folders, dry_run=dry_run, on_event=rows.append)
        told.append(sorted((row.path, row.outcome) for row in rows))
        if dry_run:
            assert list(memory.list()) == []
    assert told[0] == told[1]


def test_what_is_no_file_is_told_once_by_many_listers(
    make_tree: MakeTree, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each walks whole folders, and tells of its own range alone."""
    monkeypatch.setattr(lister, "_PAGE", 5)
    monkeypatch.setattr(lister, "_PAGES_ALONE", 2)
    source = make_tree("source", {f"d{each % 9}/{each:03}": b"" for each in range(400)})
    for number in range(9):
        for name in range(0, 400, 40):
            os.symlink(".", source / f"d{number}" / f"{name:03}-link")
            os.mkfifo(source / f"d{number}" / f"{name:03}-pipe")
        (source / f"d{number}-empty").mkdir()
    rows: list[str] = []
    memory = Operator.from_uri("memory://told-once")
    report = copy_tree(f"{source}/", memory, on_event=lambda row: rows.append(row.path))
    assert report.ok
    assert len(rows) == len(set(rows))
    assert report.totals.of("skipped").objects == 9 * (10 + 10 + 1)
    assert report.totals.of("copied").objects == 400


def test_a_move_takes_empty_folders_along(make_tree: MakeTree, tmp_path: Path) -> None:
    """Between file systems, and as markers where asked for; where they cannot be kept they stay,
    and are counted."""
    for target, folders in (
        (tmp_path / "to", False),
        (Operator.from_uri("memory://moved-folders"), True),
    ):
        source = make_tree("source", {"a/b": b"1"})
        (source / "empty" / "deep").mkdir(parents=True)
        assert move_tree(str(source), target, folders=folders).ok
        assert not source.exists()
    assert (tmp_path / "to" / "source" / "empty" / "deep").is_dir()
    source = make_tree("source", {"a/b": b"1"})
    (source / "empty").mkdir()
    report = move_tree(str(source), Operator.from_uri("memory://kept-folders"))
    assert (report.totals.of("copied").objects, report.totals.of("skipped").objects) == (1, 1)
    assert [each.name for each in source.rglob("*")] == ["empty"]


def test_a_removal_takes_all_of_a_folder(make_tree: MakeTree, tmp_path: Path) -> None:
    """With empty folders and links, never with what these lead to; a pipe stays, and is counted."""
    kept = make_tree("kept", {"f": b"1"})
    folder = make_tree("folder", {"a/b": b"1", "c": b"2"})
    (folder / "empty" / "deep").mkdir(parents=True)
    for name, leads_to in {"in": "c", "dir": "a", "out": str(kept), "nowhere": "x"}.items():
        (folder / name).symlink_to(leads_to)
    assert remove_tree(str(folder)).totals.of("deleted").objects == 6
    assert not folder.exists()
    assert files_of(kept) == {"f": b"1"}
    folder = make_tree("folder", {"a/b": b"1"})
    (folder / "empty").mkdir()
    os.mkfifo(folder / "pipe")
    report = remove_tree(f"{folder}/", exclude=["a/"])
    assert report.totals.of("skipped").objects == 1
    assert sorted(each.name for each in folder.iterdir()) == ["a", "empty", "pipe"]
    remove_tree(f"{folder}/")
    assert [each.name for each in folder.iterdir()] == ["pipe"]


def test_a_pipe_that_is_named_is_not_said_to_be_missing(tmp_path: Path) -> None:
    """It is there, and no file: that is told, and nobody waits for what it may bring."""
    os.mkfifo(tmp_path / "pipe")
    for act in (
        lambda: copy_tree(tmp_path / "pipe", tmp_path / "to"),
        lambda: remove_tree(tmp_path / "pipe"),
    ):
        with pytest.raises(Unsupported, match="pipe, socket or device"):
            act()
