"""A ledger that was lost comes back from the table, whoever dies or comes while that is done."""

from __future__ import annotations

import signal
import time
from collections import Counter

import pytest
from sqlalchemy import select

from calque.ledger import open_ledger
from calque.ledger.schema import tables
from tests.load.loader import LEASE, Place, ended, report, run, start
from tests.load.world import assert_settled, ids, write_files

FREEZE = 2.5 * LEASE


@pytest.fixture
def lost(place: Place) -> tuple[Place, list[int]]:
    """A table with rows, and an empty ledger of each kind beside it."""
    expected = write_files(place.stage, 3)
    first = Place(place.folder, place.kind, str(place.folder / "first.db"))
    assert first.load(batch_files=1).files_loaded == 3
    return place, expected


def test_killed_before_it_was_rebuilt(lost: tuple[Place, list[int]]) -> None:
    """A loader that dies when it has noted the table but not its loads leads nobody astray."""
    place, expected = lost
    assert run(place, "victim", "rebuild.before:kill") == -signal.SIGKILL
    assert run(place, "again") == 0
    assert report(place, "again")["statuses"] == {"SKIPPED_LOADED": 3}
    assert_settled(place, expected)


def test_another_comes_while_it_is_rebuilt(lost: tuple[Place, list[int]]) -> None:
    """Whoever comes while another rebuilds the ledger does not take the files for new."""
    place, expected = lost
    slow = start(place, "slow", f"rebuild.before:pause={FREEZE}")
    time.sleep(LEASE)
    assert run(place, "other") == 0
    assert report(place, "other")["statuses"] == {"SKIPPED_LOADED": 3}
    assert ended(place, "slow", slow) == 0
    assert report(place, "slow")["statuses"] == {"SKIPPED_LOADED": 3}
    assert_settled(place, expected)


def test_many_rebuild_at_once(lost: tuple[Place, list[int]]) -> None:
    """Several that rebuild at once: none fails, and no file is loaded again."""
    place, expected = lost
    names = [f"l{number}" for number in range(4)]
    loaders = [start(place, name) for name in names]
    for name, loader in zip(names, loaders, strict=True):
        assert ended(place, name, loader) == 0, report(place, name)
    assert_settled(place, expected)


def test_a_dry_run_knows_what_the_table_tells(lost: tuple[Place, list[int]]) -> None:
    """A dry run with an empty ledger tells what a load would do, and writes nothing."""
    place, _ = lost
    write_files(place.stage, 1, first=7)
    before = place.files()
    told = place.load(dry_run=True)
    assert told.files.counts == {"SKIPPED_LOADED": 3, "PLANNED": 1}
    assert place.files() == before
    with open_ledger(place.ledger) as ledger, ledger.read() as connection:
        assert connection.execute(select(tables)).all() == []
    assert place.load().files_loaded == 1


def test_two_tables_with_one_label(simple: Place) -> None:
    """Loads of two ledgers may bear one label: a ledger that takes both tables in knows both."""
    expected = write_files(simple.stage, 2)
    tables = []
    for name in ("one", "two"):
        (simple.folder / name).mkdir()
        apart = Place(simple.folder / name, simple.kind, str(simple.folder / f"{name}.db"))
        assert apart.load(stage=simple.source, label="day").files_loaded == 2
        tables.append(Place(apart.folder, apart.kind, simple.ledger))
    for place in tables * 2:
        again = place.load(stage=simple.source)
        assert again.files.counts == {"SKIPPED_LOADED": 2}
        assert place.load(stage=simple.source, label="day", force=True).replayed
        assert ids(place) == Counter(expected)
