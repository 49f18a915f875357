"""Trees inside one store: one transaction where nothing prevents it, else object by object."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from calque.operator import Operator
from calque.store.open_project import open_project
from calque.transfer.api import copy_tree, move_tree, sync_tree
from calque.transfer.model import Row
from calque.transfer.report.report_file import read_report
from tests.command import run_command_text
from tests.transfer.killed_run import Child

FILES = {"a.txt": b"a", "deep/b.txt": os.urandom(9000), "deep/er/c.txt": b"", "ü/d": b"d"}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    with open_project(str(tmp_path / "store")) as project:
        project.create_bucket("photos")
        project.create_bucket("archive")
    return tmp_path / "store"


@pytest.fixture
def photos(store: Path) -> Iterator[Operator]:
    with Operator.from_uri("calque://photos", project=str(store)) as operator:
        for path, content in FILES.items():
            operator.write(f"2025/{path}", content, content_type="text/x-odd", tags={"t": "1"})
        yield operator


def tree_of(operator: Operator, prefix: str) -> dict[str, bytes]:
    entries = operator.list(prefix, recursive=True)
    return {each.path[len(prefix) :]: operator.read(each.path) for each in entries}


def options(store: Path) -> dict[str, dict[str, object]]:
    return {"source_options": {"project": str(store)}, "target_options": {"project": str(store)}}


def test_a_move_is_one_transaction(store: Path, photos: Operator) -> None:
    """Each object has its row; far fewer requests than objects; nothing is left at the source."""
    for number in range(40):
        photos.write(f"2025/many/{number:02d}", b"x")
    rows: list[Row] = []
    report = move_tree(
        "calque://photos/2025/", "calque://archive/old/", on_event=rows.append, **options(store)
    )
    assert report.ok
    assert report.totals.of("copied").objects == 44
    assert {row.path for row in rows} >= set(FILES)
    assert {(row.outcome, row.route, row.rule) for row in rows} == {("copied", "renamed", "new")}
    assert report.totals.requests < 10
    assert tree_of(photos, "2025/") == {}
    with Operator.from_uri("calque://archive", project=str(store)) as archive:
        there = tree_of(archive, "old/")
        assert {path: there[path] for path in FILES} == FILES
        found = archive.stat("old/a.txt")
        assert (found.content_type, found.tags) == ("text/x-odd", {"t": "1"})


def test_a_copy_too(store: Path, photos: Operator) -> None:
    """The source stays; a second run finds everything up to date, object by object."""
    report = copy_tree("calque://photos/2025/", "calque://photos/copy/", **options(store))
    assert report.totals.by_route["server-side"].objects == len(FILES)
    assert report.totals.requests < 10
    assert tree_of(photos, "copy/") == tree_of(photos, "2025/") == FILES
    again = sync_tree(
        "calque://photos/2025/", "calque://photos/copy/", delete=True, **options(store)
    )
    assert again.totals.of("up to date").objects == len(FILES)
    assert again.totals.of("copied").objects == 0


def test_something_at_the_target_goes_object_by_object(store: Path, photos: Operator) -> None:
    """What is there and not in the source stays; what differs is overwritten."""
    photos.write("new/other", b"other")
    photos.write("new/a.txt", b"older and longer")
    report = move_tree("calque://photos/2025/", "calque://photos/new/", **options(store))
    assert report.ok
    assert tree_of(photos, "new/") == {**FILES, "other": b"other"}
    assert tree_of(photos, "2025/") == {}


def test_filters_go_object_by_object(store: Path, photos: Operator) -> None:
    """What is excluded stays where it is."""
    report = move_tree(
        "calque://photos/2025/", "calque://photos/new/", exclude=["deep/"], **options(store)
    )
    assert report.totals.of("copied").objects == 2
    assert set(tree_of(photos, "2025/")) == {"deep/b.txt", "deep/er/c.txt"}


def test_a_dry_run_predicts_it(store: Path, photos: Operator) -> None:
    """The same rows, and nothing is done."""
    told: list[Row] = []
    made: list[Row] = []
    places = ("calque://photos/2025/", "calque://photos/new/")
    move_tree(*places, dry_run=True, on_event=told.append, **options(store))
    assert tree_of(photos, "new/") == {}
    move_tree(*places, on_event=made.append, **options(store))

    def seen(rows: list[Row]) -> list[tuple[object, ...]]:
        return sorted((row.path, row.outcome, row.rule, row.size) for row in rows)

    assert seen(told) == seen(made)


@pytest.mark.parametrize("step", ["whole.before", "whole.after"])
def test_killed_around_the_transaction(
    store: Path, photos: Operator, tmp_path: Path, step: str
) -> None:
    """Whoever goes on ends with all of it moved, and each object has one row."""
    report = tmp_path / "report.jsonl"
    child = Child(
        tmp_path / "state",
        "calque://photos/2025/",
        "calque://photos/new/",
        kind="mv",
        report=report,
        service={"project": str(store)},
    )
    died = child.run(f"{step}:kill")
    assert died.returncode == -signal.SIGKILL, died.stderr
    assert tree_of(photos, "2025/") in ({}, FILES)
    child.finish()
    assert tree_of(photos, "2025/") == {}
    assert tree_of(photos, "new/") == FILES
    assert sorted(row.path for row in read_report(report)) == sorted(FILES)


def test_from_the_command_line(store: Path, photos: Operator) -> None:
    """``calque mv -r`` inside a store, and back."""
    photos.close()
    flags = ["-o", f"project={store}", "--quiet"]
    done = run_command_text("mv", "-r", "calque://photos/2025/", "calque://archive/x/", *flags)
    assert done.returncode == 0, done.stderr
    done = run_command_text("mv", "-r", "calque://archive/x", "calque://photos/", *flags)
    assert done.returncode == 0, done.stderr
    with Operator.from_uri("calque://photos", project=str(store)) as operator:
        assert tree_of(operator, "x/") == FILES
