"""Others touch our tables: append, drop, restore, compact, truncate, expire, move."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema
from sqlalchemy import select

from calque.config import Settings
from calque.errors import Aborted, CalqueError, Unsupported
from calque.ledger import open_ledger
from calque.ledger.schema import claims
from calque.loader.commit.truncate import truncate_table
from calque.loader.model.outcome import Status
from tests.loader.loader import LEASE, Place, run, start
from tests.loader.meddling import Meddling
from tests.loader.other_writers import append, expire_snapshots, remake, restore, write_other
from tests.loader.world import assert_settled, iceberg, ids, write_file, write_files


def test_another_writer_appends_meanwhile(place: Place) -> None:
    """A commit of another tool between our look and our commit is no harm to either."""
    expected = write_files(place.stage, 2)
    place.load()
    new = write_files(place.stage, 1, first=5)
    place.load(
        engine=Meddling(
            before=lambda: append(place, [42_000]), after=lambda: append(place, [43_000])
        )
    )
    assert ids(place) == Counter([*expected, *new, 42_000, 43_000])


def test_table_made_again_starts_clean(simple: Place) -> None:
    """A dropped and re-made table has another id: every file is new to it."""
    expected = write_files(simple.stage, 2)
    simple.load()
    remake(simple)
    told = simple.load()
    assert told.files_loaded == 2
    assert ids(simple) == Counter(expected)


def test_table_made_again_during_a_load(simple: Place) -> None:
    """A load whose table was replaced under it gives up; it never writes into the new one."""
    write_files(simple.stage, 1)
    simple.load()
    write_files(simple.stage, 1, first=3)
    with pytest.raises(Aborted, match="made again") as told:
        simple.load(engine=Meddling(after=lambda: remake(simple)))
    assert told.value.retryable  # so that a watch goes on
    assert ids(simple) == Counter()
    assert simple.load().files_loaded == 2
    with open_ledger(simple.ledger) as ledger, ledger.read() as connection:
        assert connection.execute(select(claims)).all() == []


@pytest.mark.parametrize("step", ["prepare.after:pause=60", "commit.after:kill"])
def test_markers_outlast_the_retention_of_transactions(delta: Place, step: str) -> None:
    """A table that forgets identifiers of transactions keeps ours: no row is lost or doubled."""
    expected = write_files(delta.stage, 1)
    forgets = {"delta.setTransactionRetentionDuration": "interval 1 milliseconds"}
    schema = pa.schema([("id", pa.int64()), ("name", pa.string())])
    DeltaTable.create(delta.table, Schema.from_arrow(schema), configuration=forgets)
    victim = start(delta, "victim", step)
    while not has_stopped(victim.pid):
        time.sleep(0.02)
    time.sleep(1.2 * LEASE)
    other = replace(delta, ledger=str(delta.folder / "other.db"))
    for place in (other, delta):
        place.load()
    time.sleep(0.01)
    with suppress(ProcessLookupError):
        os.kill(victim.pid, signal.SIGCONT)
    victim.join(60)
    assert ids(delta) == Counter(expected)


def has_stopped(pid: int) -> bool:
    """Whether it stands at its fault point, or is killed."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] in "TZX"


def test_restored_table_loads_again_what_it_lost(place: Place) -> None:
    """Records of commits that a restore took back are void."""
    expected = write_files(place.stage, 1)
    version = place.load().table_version
    later = write_files(place.stage, 1, first=1)
    place.load()
    restore(place, version or 0)
    assert ids(place) == Counter(expected)
    told = place.load()
    assert {row.name: str(row.status) for row in told.files} == {
        "f00000.csv": "SKIPPED_LOADED",
        "f00001.csv": "LOADED",
    }
    assert ids(place) == Counter(expected + later)
    assert place.load().count(Status.SKIPPED_LOADED) == 2


@pytest.mark.parametrize("lost", [False, True], ids=["known", "lost"])
@pytest.mark.parametrize("undone", ["force", "truncate"])
def test_restored_rows_are_not_loaded_again(simple: Place, undone: str, lost: bool) -> None:
    """A restore brings back what the ledger had put aside: those files are known again."""
    expected = write_files(simple.stage, 2)
    version = simple.load().table_version
    assert version is not None
    if undone == "force":
        simple.load(force=True)
    else:
        with open_ledger(simple.ledger) as ledger:
            truncate_table(simple.table, Settings(), ledger)
    restore(simple, version)
    assert ids(simple) == Counter(expected)
    place = replace(simple, ledger=str(simple.folder / "new.db")) if lost else simple
    for _ in range(2):
        assert place.load().files.counts == {"SKIPPED_LOADED": 2}
    assert ids(place) == Counter(expected)


def test_a_restore_that_is_taken_back(delta: Place) -> None:
    """A Delta table restored to an early version and then to a late one knows what it has."""
    expected = write_files(delta.stage, 1)
    early = delta.load().table_version
    expected += write_files(delta.stage, 1, first=1)
    late = delta.load().table_version
    assert early is not None
    assert late is not None
    restore(delta, early)
    delta.load(files=("f00000.csv",))
    restore(delta, late)
    assert delta.load().files.counts == {"SKIPPED_LOADED": 2}
    assert ids(delta) == Counter(expected)


def test_compacted_table(delta: Place) -> None:
    """Compaction by another tool changes no record; only replacing rows is refused."""
    expected = write_files(delta.stage, 1)
    delta.load()
    expected += write_files(delta.stage, 1, first=1)
    delta.load()
    DeltaTable(str(delta.folder / "lake" / "t")).optimize.compact()
    assert delta.load().count(Status.SKIPPED_LOADED) == 2
    write_other(delta.stage / "f00001.csv")
    told = delta.load(on_changed="replace")
    row = next(row for row in told.files if row.name == "f00001.csv")
    assert row.status == Status.FAILED
    assert "rewritten" in (row.message or "")
    assert ids(delta) == Counter(expected)


def test_compacted_before_a_dead_load_is_finished(delta: Place) -> None:
    """A dead load whose rows to replace were moved is aborted, and hinders no other."""
    kept = write_file(delta.stage, 0)
    write_file(delta.stage, 1)
    delta.load(batch_files=1)
    new = write_file(delta.stage, 1, generation=1)
    assert run(delta, "victim", "prepare.after:kill", on_changed="replace") < 0
    old = [one for one in ids(delta) if one not in kept]
    delta.delta_table().optimize.compact()
    told = delta.load()
    assert [one.rpartition(" ")[2] for one in told.recovered] == ["aborted"]
    assert ids(delta) == Counter([*kept, *old, *new])


def test_truncate_through_us_forgets(place: Place) -> None:
    """TRUNCATE empties the table and its records in one protocol; every file loads again."""
    expected = write_files(place.stage, 2)
    place.load()
    with open_ledger(place.ledger) as ledger:
        truncate_table(place.table, Settings(), ledger)
    assert ids(place) == Counter()
    assert place.load().files_loaded == 2
    assert_settled(place, expected, removed=True)


def test_truncated_by_another_tool(delta: Place) -> None:
    """Rows that another tool deleted stay deleted: their files were loaded."""
    write_files(delta.stage, 1)
    delta.load()
    DeltaTable(str(delta.folder / "lake" / "t")).delete()
    assert delta.load().count(Status.SKIPPED_LOADED) == 1
    assert ids(delta) == Counter()


def test_iceberg_table_that_retries_is_refused(tmp_path: Path) -> None:
    """A table whose library would repeat commits is refused with what to do."""
    place = Place(tmp_path, "iceberg", str(tmp_path / "ledger.db"))
    write_files(place.stage, 1)
    place.load()
    with iceberg(place).transaction() as change:
        change.remove_properties("commit.retry.num-retries")
    with pytest.raises(Unsupported, match="repeat commits"):
        place.load(force=True)


def test_delta_table_with_constraints_is_refused(delta: Place) -> None:
    """A table with rules that we do not check is refused."""
    write_files(delta.stage, 1)
    delta.load()
    DeltaTable(str(delta.folder / "lake" / "t")).alter.add_constraint({"positive": "id >= 0"})
    with pytest.raises(Unsupported, match="positive"):
        delta.load(force=True)


def test_a_table_that_is_none(delta: Place) -> None:
    """A file where the table should be is a clear error."""
    write_files(delta.stage, 1)
    (delta.folder / "lake").mkdir()
    (delta.folder / "lake" / "t").write_text("no table")
    with pytest.raises(CalqueError):
        delta.load()


def test_straggler_of_a_forgotten_load_is_refused(tmp_path: Path) -> None:
    """On Iceberg a load whose marker may have expired is not committed again."""
    place = Place(tmp_path, "iceberg", str(tmp_path / "ledger.db"))
    write_files(place.stage, 1)
    place.load()
    base = iceberg(place).metadata.last_sequence_number
    for number in range(1, 4):
        write_files(place.stage, 1, first=number)
        place.load()
    expire_snapshots(place)
    snapshot = place.statement().lake.open()
    with pytest.raises(Unsupported, match="cannot be told"):
        snapshot.marker("some-old-load", base)
    assert snapshot.marker("a-new-load", snapshot.version) is None


@pytest.mark.parametrize("step", ["write.after", "prepare.after", "commit.after"])
def test_dead_load_older_than_the_oldest_snapshot(tmp_path: Path, step: str) -> None:
    """On Iceberg a load that died before snapshots expired is ended, and hinders no other."""
    place = Place(tmp_path, "iceberg", str(tmp_path / "ledger.db"))
    expected = write_files(place.stage, 1)
    place.load()
    expected += write_files(place.stage, 1, first=1)
    assert run(place, "victim", f"{step}:kill") < 0
    for _ in range(2):
        table = iceberg(place)
        table.append(table.scan().to_arrow().slice(0, 0))
    expire_snapshots(place)
    place.load()
    assert ids(place) == Counter(expected)
    assert place.load().files.counts == {"SKIPPED_LOADED": 2}


def test_killed_then_expired_then_ledger_lost(tmp_path: Path) -> None:
    """On Iceberg a load killed at its very end is known to the table when all else forgot it."""
    place = Place(tmp_path, "iceberg", str(tmp_path / "ledger.db"))
    expected = write_files(place.stage, 1)
    place.load()
    expected += write_files(place.stage, 1, first=1)
    assert run(place, "victim", "finalise.after:kill") < 0
    expected += write_files(place.stage, 1, first=2)
    place.load()
    expire_snapshots(place)
    again = replace(place, ledger=str(tmp_path / "new.db"))
    assert again.load().files.counts == {"SKIPPED_LOADED": 3}
    assert ids(place) == Counter(expected)


def test_a_table_under_other_names(simple: Place) -> None:
    """A link or a detour to a table is the table: its files are loaded already."""
    expected = write_files(simple.stage, 2)
    simple.load()
    (simple.folder / "link").symlink_to(simple.folder / "lake")
    for way in ("link", "lake/../lake"):
        report = simple.load(into=simple.table.replace("/lake/", f"/{way}/"))
        assert report.count(Status.SKIPPED_LOADED) == 2
    assert_settled(simple, expected)


def test_a_moved_table_knows_its_loads(delta: Place) -> None:
    """A table that was moved, or copied, under the same ledger does not load its files again."""
    write_files(delta.stage, 2)
    delta.load()
    here = delta.folder / "lake" / "t"
    there = delta.folder / "lake" / "moved"
    here.rename(there)
    assert delta.load(into=str(there)).count(Status.SKIPPED_LOADED) == 2
    shutil.copytree(there, delta.folder / "lake" / "copied")
    assert delta.load(into=str(delta.folder / "lake" / "copied")).files_loaded == 0
