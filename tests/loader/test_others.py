"""Others touch what we touch: sources, ledgers, second loaders."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from calque.config import Settings
from calque.errors import IntegrityError, LoadAborted, Unavailable
from calque.ledger import open_ledger
from calque.ledger.tables import register_table
from calque.loader.commit.truncate import truncate_table
from calque.loader.model.outcome import Status
from calque.loader.request.option_values import on_error
from tests.loader.loader import Place, ended, report, start
from tests.loader.meddling import Meddling
from tests.loader.other_writers import write_other
from tests.loader.world import assert_settled, ids, write_files


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
    assert told.notes[0].endswith("taken over from the table itself: 2")
    assert_settled(fresh, expected)


def test_ledger_cannot_be_reached(tmp_path: Path) -> None:
    """A ledger that does not answer is a clear error, and nothing is touched."""
    where = f"postgresql://nobody@/none?host={tmp_path}"
    place = Place(tmp_path, "delta", where)
    write_files(place.stage, 1)
    with pytest.raises(Unavailable, match="ledger"):
        place.load()
    assert not (tmp_path / "lake").exists()


def test_truncated_then_ledger_lost(simple: Place) -> None:
    """A rebuild follows the order of commits: what was truncated is not taken for loaded."""
    expected = write_files(simple.stage, 2)
    simple.load()
    with open_ledger(simple.ledger) as ledger:
        truncate_table(simple.table, Settings(), ledger)
    fresh = Place(simple.folder, simple.kind, str(simple.folder / "fresh.db"))
    assert fresh.load().files_loaded == 2
    assert ids(fresh) == Counter(expected)


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
