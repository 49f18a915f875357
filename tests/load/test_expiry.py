"""The 64 days, seen from a statement: renewal, and files that may have been forgotten."""

from __future__ import annotations

import os
import time

from calque.ledger.identity import DAY
from calque.load.manifest import Status
from tests.load.loader import Place
from tests.load.world import write_files


def later(days: float) -> int:
    return time.time_ns() // 1000 + int(days * DAY)


def test_a_staged_file_keeps_its_record_alive(place: Place) -> None:
    """Looking at a file in the last quarter of its record's life renews it: no cliff."""
    write_files(place.stage, 1)
    place.load()
    for days in (50, 100, 150, 200):
        report = place.load(clock=lambda days=days: later(days))  # type: ignore[misc]
        assert report.count(Status.SKIPPED_LOADED) == 1


def test_a_dry_run_renews_nothing(simple: Place) -> None:
    """A dry run only looks: the record expires as if nobody had asked."""
    write_files(simple.stage, 1)
    simple.load()
    simple.load(dry_run=True, clock=lambda: later(60))
    assert simple.load(dry_run=True, clock=lambda: later(65)).count(Status.SKIPPED_LOADED) == 0


def test_an_old_file_without_a_record_is_uncertain(place: Place) -> None:
    """Older than records live, in a table as old: skipped and told, unless asked for."""
    write_files(place.stage, 1)
    place.load()
    write_files(place.stage, 1, first=1)
    os.utime(place.stage / "f00001.csv", (time.time() - 10, time.time() - 10))
    report = place.load(clock=lambda: later(70))
    assert report.count(Status.SKIPPED_UNCERTAIN) == 2
    assert all("load_uncertain_files" in (row.message or "") for row in report.files)
    loaded = place.load(clock=lambda: later(70), load_uncertain_files=True, files=("f00001.csv",))
    assert loaded.files_loaded == 1


def test_a_new_file_in_an_old_table_is_loaded(simple: Place) -> None:
    """A file younger than the horizon is certain: had it been loaded, it would be known."""
    write_files(simple.stage, 1)
    simple.load()
    write_files(simple.stage, 1, first=1)
    soon = time.time() + 69 * 86_400
    os.utime(simple.stage / "f00001.csv", (soon, soon))
    report = simple.load(clock=lambda: later(70))
    assert {row.name: str(row.status) for row in report.files} == {
        "f00000.csv": "SKIPPED_UNCERTAIN",
        "f00001.csv": "LOADED",
    }
