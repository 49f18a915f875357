"""Loads that were meant to break: odd values, odd files, odd names, through the whole way."""

from __future__ import annotations

from datetime import date, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from calque.errors import LoadAborted, StatementInvalid, Unsupported
from calque.loader.model.file_formats import CsvFormat
from calque.loader.model.outcome import Status
from calque.loader.request.option_values import on_error
from calque.loader.request.request import LoadRequest, Validation
from tests.loader.loader import Place
from tests.loader.world import assert_settled, files_on_disk, iceberg, rows, write_files


def staged(place: Place, **files: bytes) -> None:
    place.stage.mkdir(parents=True, exist_ok=True)
    for name, body in files.items():
        (place.stage / name.replace("_", ".")).write_bytes(body)


def test_moments_at_the_edges_of_time(simple: Place) -> None:
    """The last microsecond of the year 9999 and the first day of the year 1 are loaded."""
    late, early = "9999-12-31 23:59:59.999999", "0001-01-01 00:00:00"
    staged(simple, a_csv=f"d,t\n9999-12-31,{late}\n0001-01-01,{early}\n".encode())
    simple.load(schema=pa.schema([("d", pa.date32()), ("t", pa.timestamp("us"))]))
    found = sorted(rows(simple).to_pylist(), key=lambda row: row["d"])
    assert [row["d"] for row in found] == [date.min, date.max]
    assert [row["t"] for row in found] == [datetime.min, datetime.max]


def test_a_date_before_the_first_year(delta: Place) -> None:
    """Python has no year 0; the table has, and loading it is no accident."""
    staged(delta, a_csv=b"d,i\n0000-01-01,1\n2024-01-01,2\n")
    assert delta.load(schema=pa.schema([("d", pa.date32()), ("i", pa.int64())])).rows_loaded == 2
    assert sorted(rows(delta).column("i").to_pylist()) == [1, 2]


def test_a_bad_file_does_not_hinder_a_new_table(simple: Place) -> None:
    """With SKIP_FILE the table is made from the files that can be read; the bad one is FAILED."""
    staged(simple, a_csv="id\n1\n".encode("utf-16"), b_csv=b"id\n2\n")
    report = simple.load(on_error=on_error("skip_file"))
    assert [row.status for row in report.files] == [Status.FAILED, Status.LOADED]
    assert rows(simple).column("id").to_pylist() == [2]


def test_a_bad_file_makes_no_table_by_default(simple: Place) -> None:
    """With ABORT_STATEMENT a file that cannot be read leaves nothing behind, not even a table."""
    for body in ("id\n1\n".encode("utf-16"), b"id,ID\n1,2\n", b"PAR1\x15\x04\x15\n1,2\n"):
        staged(simple, a_csv=body, b_csv=b"id\n2\n")
        with pytest.raises(LoadAborted):
            simple.load()
        assert not list(simple.folder.rglob("*.parquet"))
        assert not (simple.folder / "lake" / "t").exists()


def test_headers_that_differ_by_case(simple: Place) -> None:
    """Files that spell a column in another case fill the same column."""
    staged(simple, a_csv=b"id,name\n1,x\n", b_csv=b"ID,Name\n2,y\n")
    assert simple.load().rows_loaded == 2
    assert sorted(row["name"] for row in rows(simple).to_pylist()) == ["x", "y"]


def test_a_table_of_partition_columns_alone(simple: Place) -> None:
    """Rows without a column of their own would be lost to readers: refused beforehand."""
    staged(simple, a_csv=b"p\n1\n")
    with pytest.raises(StatementInvalid, match="all of its columns"):
        simple.load(partition_by=("p",))


def test_a_type_that_no_table_has(simple: Place) -> None:
    """A column type that the table format does not have is named, and nothing is made."""
    staged(simple, a_csv=b"t\n10:00:00\n")
    kind = pa.time64("us") if simple.kind == "delta" else pa.decimal256(40, 2)
    with pytest.raises(Unsupported, match=r"Time64|decimal256") as refused:
        simple.load(schema=pa.schema([("t", kind)]))
    assert "\n" not in refused.value.message


def test_names_in_files_do_not_climb() -> None:
    """FILES names what is in the stage, nothing beside it."""
    for name in ("../secret.csv", "a/../../b.csv", ".."):
        with pytest.raises(StatementInvalid, match="climb"):
            LoadRequest(stage="in/", into="t", files=(name,))


def test_validation_reads_every_file_to_its_end(simple: Place) -> None:
    """RETURN_ERRORS tells all errors of all files under any ON_ERROR, and counts nothing loaded."""
    write_files(simple.stage, 1)
    simple.load()
    for name in "abc":
        (simple.stage / f"{name}.csv").write_text("id,name\nx,1\n5,2\ny,3\n")
    write_files(simple.stage, 1, first=7)
    before = files_on_disk(simple)
    report = simple.load(validation=Validation())
    assert sorted((e["file"][-5:], e["line"]) for e in report.row_errors) == [
        (f"{name}.csv", line) for name in "abc" for line in (2, 4)
    ]
    assert report.count(Status.FAILED) == 3
    assert (report.count(Status.PLANNED), report.files_loaded, report.errors) == (1, 0, 6)
    assert files_on_disk(simple) == before


def test_a_given_up_load_is_named(simple: Place) -> None:
    """The report of an aborted statement names its load, by which its errors can be asked for."""
    ids = write_files(simple.stage, 1)
    simple.load()
    (simple.stage / "bad.csv").write_text("id,name\nx,1\n")
    with pytest.raises(LoadAborted) as aborted:
        simple.load()
    assert aborted.value.report is not None
    (load_id,) = aborted.value.report.load_ids
    assert aborted.value.report.to_json()["files"][-1]["errors"] == 1
    assert load_id
    assert_settled(simple, ids)


def test_a_sample_and_a_plan_are_in_the_json(tmp_path: Path) -> None:
    """What RETURN_n_ROWS and a dry run found is told to programs too."""
    place = Place(tmp_path, "delta", str(tmp_path / "ledger.db"))
    write_files(place.stage, 1)
    told = place.load(validation=Validation(1)).to_json()
    assert told["sample"] == [{"id": 0, "name": "n0"}]
    plan = place.load(dry_run=True).to_json()["plan"]
    assert (plan["format"], plan["files"], plan["tasks"]) == ("csv", 1, 1)


@pytest.mark.parametrize(
    ("kind", "one", "two"),
    [
        (pa.date32(), "2024-02-29", "0001-01-01"),
        (pa.timestamp("us"), "1969-12-31 23:59:59.999999", "2024-01-01 10:00:00"),
        (pa.timestamp("us", "UTC"), "1969-12-31T23:59:59.999999Z", "2024-01-01T10:00:00Z"),
        (pa.bool_(), "true", "false"),
        (pa.decimal128(5, 2), "1.50", "20"),
        (pa.int64(), "-7", "7"),
        (pa.string(), "a/b=c %2F é", "__HIVE_DEFAULT_PARTITION__"),
    ],
)
def test_partitions_of_every_type(simple: Place, kind: pa.DataType, one: str, two: str) -> None:
    """A table is partitioned by a column of any type; its rows can be found and replaced."""
    body = f"id,p\n1,{one}\n2,{two}\n"
    staged(simple, a_csv=body.encode(), b_csv=body.replace("\n", "\n1").encode()[:-1])
    simple.load(partition_by=("p",), schema=pa.schema([("id", pa.int64()), ("p", kind)]))
    before = {row["id"]: row["p"] for row in rows(simple).to_pylist()}
    assert set(before) == {1, 2, 11, 12}
    assert (before[1], before[2]) == (before[11], before[12])
    (simple.stage / "a.csv").write_text(body.replace("\n1,", "\n3,"))
    assert simple.load(on_changed="replace").count(Status.LOADED) == 1
    after = {row["id"]: row["p"] for row in rows(simple).to_pylist()}
    assert after == {3: before[1], 2: before[2], 11: before[1], 12: before[2]}


def test_an_empty_string_is_a_partition_of_its_own(tmp_path: Path) -> None:
    """Iceberg tells the empty string from NULL; a query for either finds its rows."""
    place = Place(tmp_path, "iceberg", str(tmp_path / "ledger.db"))
    staged(place, a_csv=b"id,p\n1,\n2,NULL\n3,x\n")
    place.load(partition_by=("p",), format=CsvFormat(parse_header=True, null_if=("NULL",)))
    found = {
        wanted: iceberg(place).scan(row_filter=wanted).to_arrow().column("id").to_pylist()
        for wanted in ("p == ''", "p is null", "p == 'x'")
    }
    assert found == {"p == ''": [1], "p is null": [2], "p == 'x'": [3]}
