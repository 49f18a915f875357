"""Each staged file counts once: loads, loads again, changes, limits."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from calque.errors import LoadAborted, StatementInvalid
from calque.loader.model.outcome import Status
from calque.loader.report import Report
from calque.loader.request.option_values import on_error
from tests.loader.loader import Place
from tests.loader.meddling import Meddling
from tests.loader.world import assert_settled, ids, rows, write_files


def statuses(report: Report) -> dict[str, str]:
    return {row.name: str(row.status) for row in report.files}


def change(path: Path, first: int) -> list[int]:
    """New content of the same length; the ids in it."""
    mine = [first + row for row in range(4)]
    path.write_text("id,name\n" + "".join(f"{one},n{one}\n" for one in mine))
    return mine


def test_again_loads_nothing_and_says_why(place: Place) -> None:
    """The second run loads nothing and reports each file with the load that has it."""
    expected = write_files(place.stage, 3)
    first = place.load()
    again = place.load()
    assert statuses(first) == dict.fromkeys(("f00000.csv", "f00001.csv", "f00002.csv"), "LOADED")
    assert set(statuses(again).values()) == {"SKIPPED_LOADED"}
    assert all(first.load_ids[0] in (row.message or "") for row in again.files)
    assert again.load_ids == []
    assert first.rows_loaded == 12
    assert_settled(place, expected)


def test_force_doubles_and_says_so(place: Place) -> None:
    """FORCE loads what is loaded already; the report says that it was forced."""
    expected = write_files(place.stage, 2)
    place.load()
    report = place.load(force=True)
    assert report.forced
    assert report.files_loaded == 2
    assert ids(place) == Counter(expected * 2)


def test_same_file_into_another_table(simple: Place) -> None:
    """Records belong to a table: another table loads the same files."""
    expected = write_files(simple.stage, 2)
    simple.load()
    other = replace(simple, folder=simple.folder / "other")
    report = other.load(stage=f"{simple.stage}/")
    assert report.files_loaded == 2
    assert ids(other) == Counter(expected)


def test_one_of_three_changed_is_reloaded(place: Place) -> None:
    """With on_changed = reload only the changed file loads, beside its earlier rows."""
    expected = write_files(place.stage, 3)
    place.load()
    new = change(place.stage / "f00001.csv", 100_000)
    report = place.load()
    assert statuses(report)["f00001.csv"] == "LOADED"
    assert Counter(statuses(report).values()) == {"LOADED": 1, "SKIPPED_LOADED": 2}
    assert ids(place) == Counter(expected + new)


def test_changed_is_skipped(simple: Place) -> None:
    """With on_changed = skip a changed file is reported CHANGED and left out, every time."""
    expected = write_files(simple.stage, 3)
    simple.load()
    change(simple.stage / "f00001.csv", 100_000)
    for _ in range(2):
        report = simple.load(on_changed="skip")
        assert statuses(report)["f00001.csv"] == "CHANGED"
    assert_settled(simple, expected)


def test_changed_is_an_error(simple: Place) -> None:
    """With on_changed = error nothing is loaded, new files included."""
    expected = write_files(simple.stage, 3)
    simple.load()
    change(simple.stage / "f00001.csv", 100_000)
    write_files(simple.stage, 1, first=9)
    with pytest.raises(LoadAborted, match=r"f00001[.]csv changed"):
        simple.load(on_changed="error")
    assert_settled(simple, expected)


def test_changed_is_replaced(place: Place) -> None:
    """With on_changed = replace the earlier rows go and the new ones come in one commit."""
    expected = write_files(place.stage, 3)
    version = place.load().table_version
    new = change(place.stage / "f00001.csv", 100_000)
    report = place.load(on_changed="replace")
    assert report.table_version == (version or 0) + 1
    assert_settled(place, [one for one in expected if not 100 <= one < 200] + new, removed=True)


def test_neighbours_of_a_replaced_file_can_be_replaced_too(simple: Place) -> None:
    """Row numbers follow the rewriting of a shared data file, load after load."""
    write_files(simple.stage, 3)
    simple.load()
    kept: list[int] = []
    for number in (1, 0, 2):
        kept += change(simple.stage / f"f{number:05d}.csv", 100_000 + 1000 * number)
        simple.load(on_changed="replace")
    assert_settled(simple, kept, removed=True)


def test_a_write_behind_the_look_at_a_touched_file_is_seen(place: Place) -> None:
    """It leaves length and time as they were, on a file system that counts in seconds.

    The load is long, so that the record is brought up to date long after the file was looked at.
    """
    staged = place.stage / "f00000.csv"
    expected = write_files(place.stage, 1)
    now = time.time_ns() // 1000
    place.load(clock=lambda: now)
    written = staged.read_text()
    now += 60_000_000
    stamp = (now * 1000, now * 1000)
    os.utime(staged, ns=stamp)  # touched, and looked at within the same second
    expected += write_files(place.stage, 1, first=1)

    def rewrite() -> None:
        nonlocal now
        staged.write_text(written.replace("n0", "m0"))
        os.utime(staged, ns=stamp)
        now += 60_000_000

    place.load(clock=lambda: now, engine=Meddling(before=rewrite))
    report = place.load(clock=lambda: now, on_changed="replace")
    assert report.rows_loaded == 4
    assert "m0" in rows(place).column("name").to_pylist()
    assert ids(place) == Counter(expected)


def test_touched_file_is_not_loaded(place: Place) -> None:
    """A new time stamp over the same content refreshes the record and loads nothing."""
    expected = write_files(place.stage, 2)
    place.load()
    os.utime(place.stage / "f00000.csv", (1, 1))
    report = place.load()
    row = next(row for row in report.files if row.name == "f00000.csv")
    assert row.status == Status.SKIPPED_LOADED
    assert "touched" in (row.message or "")
    again = next(row for row in place.load().files if row.name == "f00000.csv")
    assert "loaded before" in (again.message or "")
    assert_settled(place, expected)


def test_same_second_and_length_is_noticed(simple: Place) -> None:
    """A write within the time stamp's grain of the load is found by content."""
    write_files(simple.stage, 1)
    path = simple.stage / "f00000.csv"
    stamp = path.stat()
    simple.load()
    path.write_text("id,name\n" + "".join(f"{one},m{one}\n" for one in (0, 1, 2, 3)))
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert path.stat().st_size == stamp.st_size
    report = simple.load()
    assert statuses(report) == {"f00000.csv": "LOADED"}


def test_size_limit_stops_after_it_is_reached(simple: Place) -> None:
    """SIZE_LIMIT loads at least one file and stops once the limit is passed."""
    write_files(simple.stage, 3)
    size = (simple.stage / "f00001.csv").stat().st_size
    assert simple.load(size_limit=1).files_loaded == 1
    assert simple.load(size_limit=size + 1).files_loaded == 2


def test_more_files_than_a_batch(simple: Place) -> None:
    """A statement larger than a batch becomes several loads, and every file counts once."""
    expected = write_files(simple.stage, 12)
    report = simple.load(batch_files=5)
    assert len(report.load_ids) == 3
    assert_settled(simple, expected)


@pytest.mark.soak
def test_fifteen_thousand_and_one_files(delta: Place) -> None:
    """There is no cap on the number of files of a statement."""
    expected = write_files(delta.stage, 15_001)
    assert delta.load().files_loaded == 15_001
    assert delta.load().count(Status.SKIPPED_LOADED) == 15_001
    assert_settled(delta, expected)


def test_empty_and_header_only_files(place: Place) -> None:
    """Files without rows are EMPTY, recorded, and not looked at again."""
    expected = write_files(place.stage, 1)
    (place.stage / "empty.csv").write_text("")
    (place.stage / "head.csv").write_text("id,name\n")
    report = place.load()
    assert statuses(report) == {"f00000.csv": "LOADED", "empty.csv": "EMPTY", "head.csv": "EMPTY"}
    assert set(statuses(place.load()).values()) == {"SKIPPED_LOADED"}
    assert_settled(place, expected)


def test_only_empty_files(simple: Place) -> None:
    """A load without a single row is committed and recorded as well."""
    write_files(simple.stage, 1)
    simple.load()
    (simple.stage / "empty.csv").write_text("id,name\n")
    report = simple.load()
    assert statuses(report)["empty.csv"] == "EMPTY"
    assert set(statuses(simple.load()).values()) == {"SKIPPED_LOADED"}


def test_empty_stage_makes_nothing(simple: Place) -> None:
    """No files: no table, no load, an empty report."""
    simple.stage.mkdir()
    report = simple.load()
    assert len(report.files) == 0
    assert report.complete
    assert not (simple.folder / "lake" / "t").exists()


def test_unfinished_and_hidden_files_are_left_alone(simple: Place) -> None:
    """Names of files that are being written, or hidden, are no part of the stage."""
    expected = write_files(simple.stage, 1)
    for name in ("_x.csv", ".x.csv", "x.csv.tmp", "x.csv._COPYING_", "_dir/y.csv", ".d/z.csv"):
        path = simple.stage / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("id,name\n666,bad\n")
    report = simple.load()
    assert report.ignored == 6
    assert_settled(simple, expected)


def test_minimum_age(simple: Place) -> None:
    """A file younger than the minimum age waits, and loads once it is old enough."""
    expected = write_files(simple.stage, 2)
    os.utime(simple.stage / "f00000.csv", (10_000, 10_000))
    report = simple.load(min_age=3600)
    assert statuses(report) == {"f00000.csv": "LOADED", "f00001.csv": "IN_PROGRESS"}
    assert not report.complete
    simple.load()
    assert_settled(simple, expected)


def test_files_list(place: Place) -> None:
    """FILES loads what it names; a name that is not there is FAILED and nothing else suffers."""
    write_files(place.stage, 3)
    report = place.load(
        files=("f00002.csv", "f00000.csv", "nope.csv"), on_error=on_error("skip_file")
    )
    assert statuses(report) == {
        "f00000.csv": "LOADED",
        "f00002.csv": "LOADED",
        "nope.csv": "FAILED",
    }
    again = place.load(files=("f00002.csv", "f00001.csv"))
    assert statuses(again) == {"f00001.csv": "LOADED", "f00002.csv": "SKIPPED_LOADED"}


def test_missing_file_aborts_by_default(simple: Place) -> None:
    """Under ABORT_STATEMENT a missing name stops the statement before anything is loaded."""
    write_files(simple.stage, 1)
    with pytest.raises(LoadAborted, match="nope"):
        simple.load(files=("f00000.csv", "nope.csv"))


def test_pattern_is_anchored_at_both_ends(simple: Place) -> None:
    """PATTERN matches the whole name after the stage's path."""
    write_files(simple.stage / "a", 1)
    write_files(simple.stage / "b", 1, first=1)
    assert simple.load(pattern=r"f\d+[.]csv").files_loaded == 0
    assert simple.load(pattern=r"a/f\d+").files_loaded == 0
    report = simple.load(pattern=r"b/.*")
    assert statuses(report) == {"b/f00001.csv": "LOADED"}


def test_glob_in_the_location(simple: Place) -> None:
    """A glob picks files; a star does not cross folders, two stars do."""
    write_files(simple.stage / "x", 1)
    write_files(simple.stage / "y" / "z", 2, first=1)
    one = simple.load(stage=f"{simple.stage}/*/*.csv")
    assert statuses(one) == {"x/f00000.csv": "LOADED"}
    rest = simple.load(stage=f"{simple.stage}/**/f0000[12].csv")
    assert rest.files_loaded == 2


def test_a_single_file_as_stage(simple: Place) -> None:
    """A location that is a file loads that file."""
    write_files(simple.stage, 2)
    report = simple.load(stage=str(simple.stage / "f00001.csv"))
    assert statuses(report) == {"f00001.csv": "LOADED"}
    assert set(statuses(simple.load()).values()) == {"LOADED", "SKIPPED_LOADED"}


def test_table_inside_its_stage_is_not_loaded_into_itself(delta: Place) -> None:
    """A table that lies in the stage's folder is not taken for staged files."""
    expected = write_files(delta.stage, 1)
    table = str(delta.stage / "table")
    for _ in range(2):
        delta.load(into=table)
    assert sorted(replaced_rows(table)) == expected


def test_a_table_in_a_stage_that_links_lead_to(delta: Place) -> None:
    """Named through a link, a table in its stage is still not taken for staged files."""
    expected = write_files(delta.stage, 1)
    link = delta.folder / "link"
    link.symlink_to(delta.stage)
    for folder in (link, delta.stage, link):
        delta.load(stage=f"{link}/", into=f"{folder}/table")
    assert sorted(replaced_rows(f"{link}/table")) == expected


def test_a_new_table_in_its_stage_does_not_feed_itself(delta: Place) -> None:
    """A table that is made in the stage while it is listed is not loaded into itself."""
    delta.stage.mkdir()
    for name in "abx":
        pq.write_table(pa.table({"id": [1]}), delta.stage / f"{name}.parquet")
    (delta.stage / "t").mkdir()
    delta.load(into=str(delta.stage / "t"), batch_files=1)
    assert replaced_rows(str(delta.stage / "t")) == [1, 1, 1]


@pytest.mark.parametrize("made", [False, True])
def test_stage_and_archive_in_the_table(delta: Place, made: bool) -> None:
    """Staged or archived files in the table's folder, which its cleaner empties, are refused."""
    write_files(delta.stage, 1)
    if made:
        delta.load()
    write_files(Path(delta.table) / "in", 1, first=1)
    for options in ({"stage": f"{delta.table}/in/"}, {"archive": f"{delta.table}/done"}):
        with pytest.raises(StatementInvalid, match="table's own folder"):
            delta.load(**options)
    assert (delta.stage / "f00000.csv").exists()


def replaced_rows(table: str) -> list[int]:
    return list(DeltaTable(table).to_pyarrow_table().column("id").to_pylist())


def test_awkward_names(simple: Place) -> None:
    """Spaces, percent signs, hashes and other scripts in names load, once."""
    simple.stage.mkdir()
    names = ["a b.csv", "100%.csv", "x#y.csv", "naïve ☃.csv", "q?.csv", "it's.csv"]
    for number, name in enumerate(names):
        (simple.stage / name).write_text(f"id,name\n{number},x\n")
    assert simple.load().files_loaded == len(names)
    assert simple.load().count(Status.SKIPPED_LOADED) == len(names)
    assert ids(simple) == Counter(range(len(names)))


def test_names_that_are_no_text(simple: Place) -> None:
    """A name that is not UTF-8 is refused for its file alone; the others load, again and again."""
    expected = write_files(simple.stage, 2)
    strange = os.fsencode(simple.stage) + b"/f0000\xff.csv"
    Path(os.fsdecode(strange)).write_text("id,name\n9,z\n")
    with pytest.raises(LoadAborted, match=r"f0000\\xff[.]csv: its name is not UTF-8"):
        simple.load()
    for known in ("LOADED", "SKIPPED_LOADED"):
        report = simple.load(on_error=on_error("skip_file"))
        assert statuses(report) == {
            "f00000.csv": known,
            "f00001.csv": known,
            "f0000\\xff.csv": "FAILED",
        }
        json.dumps(report.to_json())
    named = simple.load(files=("f0000\udcff.csv", "f00000.csv"), on_error=on_error("continue"))
    assert statuses(named) == {"f0000\\xff.csv": "FAILED", "f00000.csv": "SKIPPED_LOADED"}
    assert_settled(simple, expected)


def test_a_stage_whose_name_is_no_text(simple: Place) -> None:
    """A folder whose own name is not UTF-8 is refused before anything is looked at."""
    folder = simple.folder / "st\udcffage"
    write_files(folder, 1)
    with pytest.raises(StatementInvalid, match=r"st\\xffage"):
        simple.load(stage=f"{folder}/")


def test_files_and_pattern_exclude_each_other(simple: Place) -> None:
    """A contradictory request is refused before anything is looked at."""
    with pytest.raises(StatementInvalid, match="FILES and PATTERN"):
        simple.load(files=("a",), pattern="b")


def test_rows_are_whole(simple: Place) -> None:
    """Not only ids: every column of every row arrives."""
    write_files(simple.stage, 2)
    simple.load()
    assert all(row["name"] == f"n{row['id']}" for row in rows(simple).to_pylist())
