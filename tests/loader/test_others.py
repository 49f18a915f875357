"""Others touch what we touch: sources, tables, ledgers, second loaders."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from sqlalchemy import select

from calque.config import Settings
from calque.errors import (
    Aborted,
    CalqueError,
    IntegrityError,
    LoadAborted,
    Unavailable,
    Unsupported,
)
from calque.ledger import open_ledger
from calque.ledger.schema import claims, purges
from calque.ledger.tables import register_table
from calque.loader.commit.truncate import truncate_table
from calque.loader.model.outcome import Status
from calque.loader.request.option_values import on_error
from tests.loader.loader import Place, ended, report, run, start
from tests.loader.meddling import Meddling
from tests.loader.world import assert_settled, iceberg, ids, write_file, write_files


def test_source_changed_before_it_is_read(place: Place) -> None:
    """A source that moved between listing and reading is CHANGED; the rest loads."""
    expected = write_files(place.stage, 3)
    path = place.stage / "f00001.csv"
    engine = Meddling(before=lambda: write_other(path))
    told = place.load(engine=engine)
    assert told.files.counts == {"LOADED": 2, "CHANGED": 1}
    assert_settled(place, [one for one in expected if not 100 <= one < 200])
    place.load()
    assert_settled(place, [one for one in expected if not 100 <= one < 200] + [7777])


def write_other(path: Path) -> None:
    path.write_text("id,name\n7777,new\n")


def test_source_changed_after_it_was_read(place: Place) -> None:
    """A source that moved before the load is prepared leaves the data file it shares."""
    expected = write_files(place.stage, 3)
    path = place.stage / "f00001.csv"
    told = place.load(engine=Meddling(after=lambda: write_other(path)))
    assert told.files.counts == {"LOADED": 2, "CHANGED": 1}
    assert_settled(place, [one for one in expected if not 100 <= one < 200])
    place.load()
    assert ids(place)[7777] == 1


def test_source_removed_before_it_is_read(simple: Place) -> None:
    """A source that vanished fails the statement by default, and only itself under SKIP_FILE."""
    expected = write_files(simple.stage, 2)
    path = simple.stage / "f00001.csv"
    with pytest.raises(LoadAborted, match="f00001"):
        simple.load(engine=Meddling(before=path.unlink))
    write_files(simple.stage, 1, first=1)
    told = simple.load(engine=Meddling(before=path.unlink), on_error=on_error("skip_file"))
    assert told.files.counts == {"LOADED": 1, "FAILED": 1}
    assert_settled(simple, expected[:4])


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


def append(place: Place, values: list[int]) -> None:
    """Rows by the table's own library."""
    more = pa.table({"id": values, "name": ["other"] * len(values)})
    if place.kind == "delta":
        write_deltalake(str(place.folder / "lake" / "t"), more, mode="append")
    else:
        iceberg(place).append(more)


def test_two_loaders_load_every_file_once(place: Place) -> None:
    """Several loaders at once on one stage: every file once, and no statement fails."""
    expected = write_files(place.stage, 9)
    loaders = [start(place, f"loader{number}") for number in range(3)]
    codes = [ended(place, f"loader{number}", one) for number, one in enumerate(loaders)]
    assert codes == [0, 0, 0]
    told = [report(place, f"loader{number}") for number in range(3)]
    assert sum(one["files_loaded"] for one in told) == 9
    for one in told:
        assert {row["status"] for row in one["files"]} <= {
            "LOADED",
            "IN_PROGRESS",
            "SKIPPED_LOADED",
        }
    assert_settled(place, expected)


def test_files_held_by_a_live_load_are_in_progress(simple: Place) -> None:
    """What another live load holds is IN_PROGRESS; the rest of the statement goes on."""
    write_files(simple.stage, 1, first=20)
    simple.load()
    write_files(simple.stage, 2)
    new = 0

    def second() -> None:
        nonlocal new
        write_files(simple.stage, 1, first=8)
        told = simple.load()
        assert told.files.counts == {"IN_PROGRESS": 2, "LOADED": 1, "SKIPPED_LOADED": 1}
        new = told.files_loaded

    simple.load(engine=Meddling(before=second))
    assert new == 1
    assert simple.load().count(Status.SKIPPED_LOADED) == 4


def test_ledger_lost(place: Place) -> None:
    """With a new ledger the table itself tells what was loaded; nothing is loaded twice."""
    expected = write_files(place.stage, 2)
    place.load()
    expected += write_files(place.stage, 1, first=4)
    place.load()
    fresh = Place(place.folder, place.kind, str(place.folder / "fresh.db"))
    told = fresh.load()
    assert told.count(Status.SKIPPED_LOADED) == 3
    assert "2 earlier loads" in told.notes[0]
    assert_settled(fresh, expected)


def test_ledger_cannot_be_reached(tmp_path: Path) -> None:
    """A ledger that does not answer is a clear error, and nothing is touched."""
    where = f"postgresql://nobody@/none?host={tmp_path}"
    place = Place(tmp_path, "delta", where)
    write_files(place.stage, 1)
    with pytest.raises(Unavailable, match="ledger"):
        place.load()
    assert not (tmp_path / "lake").exists()


def test_table_made_again_starts_clean(simple: Place) -> None:
    """A dropped and re-made table has another id: every file is new to it."""
    expected = write_files(simple.stage, 2)
    simple.load()
    remake(simple)
    told = simple.load()
    assert told.files_loaded == 2
    assert ids(simple) == Counter(expected)


def remake(place: Place) -> None:
    empty = pa.schema([("id", pa.int64()), ("name", pa.string())])
    if place.kind == "delta":
        lake = place.folder / "lake" / "t"
        for path in sorted(lake.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        DeltaTable.create(str(lake), empty)
        return
    table = iceberg(place)
    table.catalog.drop_table(("default", "t"))
    lake = place.folder / "lake" / "again"
    table.catalog.create_table(
        "default.t", empty, location=f"file://{lake}", properties={"commit.retry.num-retries": "0"}
    )


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


def restore(place: Place, version: int) -> None:
    if place.kind == "delta":
        DeltaTable(str(place.folder / "lake" / "t")).restore(version)
        return
    table = iceberg(place)
    snapshot = next(one for one in table.snapshots() if one.sequence_number == version)
    table.manage_snapshots().rollback_to_snapshot(snapshot.snapshot_id).commit()


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


def test_truncated_then_ledger_lost(simple: Place) -> None:
    """A rebuild follows the order of commits: what was truncated is not taken for loaded."""
    expected = write_files(simple.stage, 2)
    simple.load()
    with open_ledger(simple.ledger) as ledger:
        truncate_table(simple.table, Settings(), ledger)
    fresh = Place(simple.folder, simple.kind, str(simple.folder / "fresh.db"))
    assert fresh.load().files_loaded == 2
    assert ids(fresh) == Counter(expected)


def test_truncated_by_another_tool(delta: Place) -> None:
    """Rows that another tool deleted stay deleted: their files were loaded."""
    write_files(delta.stage, 1)
    delta.load()
    DeltaTable(str(delta.folder / "lake" / "t")).delete()
    assert delta.load().count(Status.SKIPPED_LOADED) == 1
    assert ids(delta) == Counter()


def test_purge_removes_only_what_was_loaded(place: Place) -> None:
    """PURGE removes loaded sources; one that failed stays."""
    expected = write_files(place.stage, 2)
    place.load(max_files=1, purge=True)
    assert sorted(path.name for path in place.stage.iterdir()) == ["f00001.csv"]
    place.load(purge=True)
    assert list(place.stage.iterdir()) == []
    assert ids(place) == Counter(expected)


def test_purge_empties_its_queue(simple: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many sources a load had, all of them are removed by the statement that says so."""
    monkeypatch.setattr("calque.ledger.purge.FILES_AT_ONCE", 3)
    write_files(simple.stage, 10)
    assert simple.load(purge=True).purged == 10
    assert list(simple.stage.iterdir()) == []
    assert _queue(simple) == 0


def test_purge_leaves_a_replaced_source(simple: Place) -> None:
    """A source that was replaced after its load is no longer ours to remove."""
    expected = write_files(simple.stage, 1)
    path = simple.stage / "f00000.csv"
    assert run(simple, "victim", "purge.before:kill", purge=True) < 0
    write_other(path)
    told = simple.load(on_changed="skip")
    assert told.purged == 0
    assert path.exists()
    assert _queue(simple) == 0
    assert ids(simple) == Counter(expected)


def test_purge_that_fails_is_told_and_stays_queued(simple: Place) -> None:
    """A source that cannot be removed is reported and tried again next time."""
    write_files(simple.stage, 1)
    path = simple.stage / "f00000.csv"
    assert run(simple, "victim", "purge.before:kill", purge=True) < 0
    body = path.read_bytes()
    path.unlink()
    path.symlink_to("f00000.csv")  # a loop: nothing can be told of it
    told = simple.load()
    assert any("could not be removed" in note for note in told.notes)
    assert _queue(simple) == 1
    path.unlink()
    path.write_bytes(body)
    simple.load()
    assert _queue(simple) == 0


def _queue(place: Place) -> int:
    with open_ledger(place.ledger) as ledger, ledger.read() as connection:
        return len(connection.execute(select(purges)).all())


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


def expire_snapshots(place: Place) -> None:
    """Let an Iceberg table forget every snapshot but the last."""
    table = iceberg(place)
    last = table.current_snapshot()
    assert last is not None
    old = [one.snapshot_id for one in table.snapshots() if one.snapshot_id != last.snapshot_id]
    table.maintenance.expire_snapshots().by_ids(old).commit()


def test_label_makes_a_statement_idempotent(place: Place) -> None:
    """A label that was loaded gives its report again and loads nothing, even with FORCE."""
    expected = write_files(place.stage, 2)
    first = place.load(label="nightly-1", force=True)
    write_files(place.stage, 1, first=9)
    again = place.load(label="nightly-1", force=True)
    assert first.load_ids == again.load_ids == ["nightly-1"]
    assert again.replayed
    assert again.rows_loaded == first.rows_loaded
    assert ids(place) == Counter(expected)


def test_label_of_an_aborted_load_can_be_used_again(simple: Place) -> None:
    """A label whose load was given up is free."""
    write_files(simple.stage, 1)
    simple.load()
    (simple.stage / "bad.csv").write_text("id,name\nx,y\n")
    with pytest.raises(LoadAborted):
        simple.load(label="once")
    (simple.stage / "bad.csv").write_text("id,name\n77,y\n")
    told = simple.load(label="once")
    assert told.load_ids == ["once~2"]
    assert simple.load(label="once").replayed


def test_a_label_that_another_ends_meanwhile(simple: Place) -> None:
    """Of two that run a labelled statement at once one loads; the other gives its report again."""
    expected = write_files(simple.stage, 2)

    def overtake() -> None:
        simple.load(label="once", force=True)

    late = simple.load(label="once", force=True, engine=Meddling(before_inference=overtake))
    assert late.replayed
    assert ids(simple) == Counter(expected)
    assert simple.load(label="once", force=True).replayed


def test_labelled_statement_killed_between_batches(simple: Place) -> None:
    """A labelled statement of several loads goes on where it was killed, FORCE or not."""
    expected = write_files(simple.stage, 4)
    code = run(simple, "victim", "claim.before@2:kill", label="big", batch_files=2, force=True)
    assert code < 0
    told = simple.load(label="big", batch_files=2, force=True)
    assert told.files_loaded == 2
    assert ids(simple) == Counter(expected)
    assert simple.load(label="big", batch_files=2, force=True).replayed


def test_rebuild_that_was_cut_short(place: Place) -> None:
    """Killed after the table was noted and before its loads were: the next one takes them in."""
    expected = write_files(place.stage, 2)
    place.load()
    fresh = Place(place.folder, place.kind, str(place.folder / "fresh.db"))
    lake = fresh.statement().lake
    with open_ledger(fresh.ledger) as ledger:
        register_table(ledger, lake.key(lake.open()))
    assert fresh.load().files_loaded == 0
    assert_settled(fresh, expected)


def test_a_sidecar_that_cannot_be_read(simple: Place) -> None:
    """With ledger and sidecar both lost nothing is guessed: no load, until the sidecar is back."""
    expected = write_files(simple.stage, 2)
    simple.load()
    (sidecar,) = simple.folder.rglob("*.json.gz")
    whole = sidecar.read_bytes()
    sidecar.write_bytes(b"garbage")
    fresh = Place(simple.folder, simple.kind, str(simple.folder / "fresh.db"))
    for _ in range(2):
        with pytest.raises(IntegrityError, match="sidecar"):
            fresh.load()
    sidecar.write_bytes(whole)
    assert fresh.load().files_loaded == 0
    assert_settled(fresh, expected)


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
