"""The 64 days: renewal, files that may have been forgotten, and what goes when they are over."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections import Counter
from dataclasses import replace

import pytest
from sqlalchemy import select

from calque.config import Settings
from calque.ledger import open_ledger
from calque.ledger.identity import DAY
from calque.ledger.schema import claims, loads
from calque.loader.after.expire import Swept, expire
from calque.loader.model.outcome import Status
from tests.loader.loader import Place, run
from tests.loader.meddling import Meddling
from tests.loader.world import assert_settled, iceberg, ids, write_files


def later(days: float) -> int:
    return time.time_ns() // 1000 + int(days * DAY)


def test_a_staged_file_keeps_its_record_alive(place: Place) -> None:
    """Looking at a file in the last quarter of its record's life renews it: no cliff."""
    write_files(place.stage, 1)
    place.load()
    for days in (50, 100, 150, 200):
        report = place.load(clock=lambda days=days: later(days))  # type: ignore[misc]
        assert report.count(Status.SKIPPED_LOADED) == 1


def test_a_limited_load_keeps_records_alive(simple: Place) -> None:
    """A load that stops at its limit has renewed the records of the files it met before."""
    write_files(simple.stage, 1)
    simple.load()
    write_files(simple.stage, 2, first=1)
    assert simple.load(clock=lambda: later(60), max_files=1).files_loaded == 1
    report = simple.load(clock=lambda: later(66), files=("f00000.csv",))
    assert report.count(Status.SKIPPED_LOADED) == 1


def test_a_dry_run_renews_nothing(simple: Place) -> None:
    """A dry run only looks: the record expires as if nobody had asked."""
    write_files(simple.stage, 1)
    simple.load()
    simple.load(dry_run=True, clock=lambda: later(60))
    assert swept(simple, 65).files == 1


def test_an_old_file_without_a_record_is_uncertain(place: Place) -> None:
    """Older than records live, in a table as old: skipped and told, unless asked for."""
    write_files(place.stage, 1)
    place.load()
    write_files(place.stage, 1, first=1)
    os.utime(place.stage / "f00001.csv", (time.time() - 10, time.time() - 10))
    assert swept(place, 65).files == 1
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
    assert swept(simple, 65).files == 1
    soon = time.time() + 69 * 86_400
    os.utime(simple.stage / "f00001.csv", (soon, soon))
    report = simple.load(clock=lambda: later(70))
    assert {row.name: str(row.status) for row in report.files} == {
        "f00000.csv": "SKIPPED_UNCERTAIN",
        "f00001.csv": "LOADED",
    }


def sidecars(place: Place) -> list[str]:
    """What loads left beside the table."""
    found = (place.folder / "lake").rglob("_calque/loads/*")
    return sorted(path.name for path in found if path.suffix != ".forgotten")


def swept(place: Place, days: float = 0) -> Swept:
    with open_ledger(place.ledger, clock=lambda: later(days)) as ledger:
        return expire(Settings(), ledger)


def test_sidecars_expire_with_their_loads(place: Place) -> None:
    """A load of which nothing is remembered any more leaves no sidecar; others keep theirs."""
    write_files(place.stage, 1)
    first = place.load().load_ids[0]
    assert sidecars(place) == [f"{first}.done", f"{first}.json.gz"]
    assert swept(place, 60).loads == 0
    write_files(place.stage, 1, first=1)
    second = place.load(clock=lambda: later(60), files=("f00001.csv",)).load_ids[0]
    done = swept(place, 70)
    assert (done.files, done.loads, done.sidecars, done.troubles) == (1, 1, 1, [])
    assert sidecars(place) == [f"{second}.done", f"{second}.json.gz"]


def test_renewed_records_keep_their_sidecar(simple: Place) -> None:
    """A file that is still staged keeps record, load and sidecar, however old they are."""
    write_files(simple.stage, 1)
    simple.load()
    simple.load(clock=lambda: later(60))
    assert (swept(simple, 70).loads, len(sidecars(simple))) == (0, 2)


def test_a_sidecar_that_cannot_go_keeps_its_load(delta: Place) -> None:
    """What could not be removed is told and tried again: nothing is forgotten half."""
    write_files(delta.stage, 1)
    delta.load()
    folder = delta.folder / "lake" / "t" / "_calque"
    folder.rename(folder.with_name("aside"))
    folder.symlink_to("_calque")  # a loop: nothing can be told of it
    done = swept(delta, 70)
    assert (done.loads, len(done.troubles)) == (0, 1)
    folder.unlink()
    folder.with_name("aside").rename(folder)
    done = swept(delta, 70)
    assert (done.loads, done.sidecars, sidecars(delta)) == (1, 1, [])


def test_a_table_that_is_gone_stays_gone(delta: Place) -> None:
    """What is forgotten of a table that was dropped makes no folder in its place."""
    write_files(delta.stage, 1)
    delta.load()
    shutil.rmtree(delta.folder / "lake" / "t")
    done = swept(delta, 70)
    assert (done.files, done.loads, done.sidecars) == (1, 1, 0)
    assert not (delta.folder / "lake" / "t").exists()


def states(place: Place) -> set[str]:
    with open_ledger(place.ledger) as ledger, ledger.read() as connection:
        return set(connection.execute(select(loads.c.state)).scalars())


@pytest.mark.parametrize("step", ["write.before", "prepare.after", "commit.after"])
def test_dead_loads_of_a_table_made_again(simple: Place, step: str) -> None:
    """What was open for a dropped and re-made table is let go; the new table is not touched."""
    expected = write_files(simple.stage, 2)
    simple.load(max_files=1)
    assert run(simple, "victim", f"{step}:kill") == -signal.SIGKILL
    drop(simple)
    made = simple.load()  # lets it go itself where the lease is over by then
    done = swept(simple)
    ended = [told.partition(": ")[2] for told in (*made.recovered, *done.ended)]
    assert ended in (["aborted"], ["its table is gone"])
    assert states(simple) <= {"COMMITTED", "ABORTED"}
    assert swept(simple).ended == []
    assert_settled_claims(simple)
    assert ids(simple) == Counter(expected)


def test_dead_loads_of_a_dropped_table(simple: Place) -> None:
    """Without a table a load goes that was never prepared: nothing can hold its rows."""
    write_files(simple.stage, 2)
    simple.load(max_files=1)
    assert run(simple, "victim", "write.before:kill") == -signal.SIGKILL
    drop(simple)
    assert len(swept(simple).ended) == 1
    assert_settled_claims(simple)


def test_a_table_that_comes_back(delta: Place) -> None:
    """A table that was away for a while is not betrayed: what it has committed counts once."""
    expected = write_files(delta.stage, 2)
    delta.load(max_files=1)
    assert run(delta, "victim", "commit.after:kill") == -signal.SIGKILL
    table = delta.folder / "lake" / "t"
    table.rename(delta.folder / "away")
    done = swept(delta)
    assert (done.ended, len(done.troubles)) == ([], 1)
    (delta.folder / "away").rename(table)
    delta.load()
    assert_settled(delta, expected)


def assert_settled_claims(place: Place) -> None:
    with open_ledger(place.ledger) as ledger, ledger.read() as connection:
        assert connection.execute(select(claims)).all() == []


def test_dead_loads_of_a_table_that_is_there(simple: Place) -> None:
    """A dead load of a living table is finished as the next load would finish it."""
    expected = write_files(simple.stage, 2)
    assert run(simple, "victim", "commit.after:kill") == -signal.SIGKILL
    assert [told.partition(": ")[2] for told in swept(simple).ended] == ["committed"]
    assert_settled(simple, expected)


def test_living_loads_are_left_alone(simple: Place) -> None:
    """A load whose process is alive is not ended by anybody's clean-up."""
    write_files(simple.stage, 1)
    simple.load()
    write_files(simple.stage, 1, first=1)
    found: list[Swept] = []
    simple.load(engine=Meddling(after=lambda: found.append(swept(simple))), lease_seconds=60)
    assert [one.ended for one in found] == [[]]


def test_sidecars_of_an_earlier_table_are_not_its_own(simple: Place) -> None:
    """A table made again in the same folder, with a lost ledger, takes nothing for loaded."""
    expected = write_files(simple.stage, 1)
    simple.load()
    drop(simple, keep_files=True)
    lost = replace(simple, ledger=str(simple.folder / "other.db"))
    assert lost.load().files_loaded == 1
    assert ids(lost) == Counter(expected)


def drop(place: Place, *, keep_files: bool = False) -> None:
    """Drop the table as its own tools do; ``keep_files``: what lies beside it stays."""
    table = place.folder / "lake" / "t"
    if place.kind == "delta":
        shutil.rmtree(table / "_delta_log" if keep_files else table)
        return
    iceberg(place).catalog.drop_table(("default", "t"))
