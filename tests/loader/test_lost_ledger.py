"""A ledger that was lost comes back from the table, whoever dies or comes while that is done."""

from __future__ import annotations

import signal
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from sqlalchemy import select

from calque import faults
from calque.config import Settings
from calque.errors import CalqueError
from calque.ledger import open_ledger
from calque.ledger.history import LoadRow, history, results_of
from calque.ledger.schema import tables
from calque.loader.commit.tables import Mark, open_table
from calque.loader.request.option_values import on_error
from tests.loader.loader import LEASE, Place, ended, report, run, start
from tests.loader.world import assert_settled, ids, write_files

FREEZE = 2.5 * LEASE
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


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


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("gone", [False, True])
def test_a_prepared_loader_sleeps(
    simple: Place, monkeypatch: pytest.MonkeyPatch, force: bool, gone: bool
) -> None:
    """A ledger that meets a table fences loads without an outcome: a sleeper commits no more."""
    write_files(simple.stage, 1)
    simple.load()
    expected = write_files(simple.stage, 2)
    other = replace(simple, ledger=str(simple.folder / "other.db"))
    plain, slept = faults.point, []

    def point(step: str) -> None:
        if step == "prepare.after" and not slept:
            slept.extend(sidecars_without_outcome(simple))
            if gone:
                Path(simple.ledger).unlink()
            assert other.load().files.counts == {"LOADED": 1, "SKIPPED_LOADED": 1}
            marker = open_table(simple.table, Settings()).open().marker(slept[0], 0)
            assert marker is not None
            assert marker.mark is Mark.ABORTED
            assert sidecars_without_outcome(simple) == []
        plain(step)

    monkeypatch.setattr(faults, "point", point)
    try:
        told = simple.load(files=("f00001.csv",), force=force)
    except CalqueError:
        assert gone  # it has nowhere to write down what it does
    else:
        # What a forced one was to load it loads, by a load that everybody can know.
        assert told.files.counts == ({"LOADED": 1} if force else {"SKIPPED_LOADED": 1})
        expected += [100, 101, 102, 103] if force else []
    assert len(slept) == 1
    assert ids(other) == Counter(expected)


def sidecars_without_outcome(place: Place) -> list[str]:
    names = {path.rpartition("/")[2] for path in place.files() if "_calque/loads/" in path}
    listed = {name.removesuffix(".json.gz") for name in names if name.endswith(".json.gz")}
    return sorted(listed - {name.removesuffix(".done") for name in names})


def test_history_and_purges_come_back(place: Place) -> None:
    """A rebuilt ledger tells files, rows and errors of each load, and removes what was to go."""
    write_files(place.stage, 2)
    (place.stage / "bad.csv").write_text("id,name\n1,a\nx,b\n")
    lost = Place(place.folder, place.kind, str(place.folder / "first.db"))
    options = {"purge": True, "on_error": on_error("continue"), "schema": SCHEMA}
    assert run(lost, "victim", "purge.before:kill", **options) < 0
    assert len(list(place.stage.iterdir())) == 3
    before = loads_of(lost)
    told = place.load()
    assert (told.purged, list(place.stage.iterdir())) == (3, [])
    assert loads_of(place) == before == [(3, 9, 1)]
    (load,) = history_of(place)
    with open_ledger(place.ledger) as ledger:
        found = {
            row.name: (row.status, row.rows_loaded) for row in results_of(ledger, load.load_id)
        }
    assert found["bad.csv"] == ("PARTIALLY_LOADED", 1)


def history_of(place: Place) -> list[LoadRow]:
    lake = open_table(place.table, Settings())
    key = lake.key(lake.open())
    with open_ledger(place.ledger) as ledger:
        return history(ledger, key)


def loads_of(place: Place) -> list[tuple[int, int, int]]:
    return [(one.files, one.rows, one.errors) for one in history_of(place)]
