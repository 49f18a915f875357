"""Both engines: the same tasks, the same rows, one outcome for each staged file."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, date, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from calque.loader.model.content_hash import content_hash
from calque.loader.model.data_file import ColumnStats
from calque.loader.model.error_policy import ErrorMode, ErrorPolicy
from calque.loader.model.file_formats import CsvFormat, JsonFormat
from calque.loader.model.outcome import Status
from calque.loader.model.plan import Engine, MetadataColumn, MetadataKind, TargetSchema
from tests.loader.run.conftest import AB, CONTINUE, World, data_files, outcomes


def test_many_small_files_become_one(world: World, engine: Engine) -> None:
    """Small inputs share one data file, whose spans and statistics are right."""
    files = [world.put(f"{n:03d}.csv", b"%d,x\n%d,y\n" % (n, -n)) for n in range(50)]
    results = list(engine.run(world.plan(files)))
    (made,) = data_files(results)
    assert len(world.rows(results)) == 100
    assert made.columns == {"a": ColumnStats(0, -49, 49), "b": ColumnStats(0, "x", "y")}
    assert [span.rows for span in made.spans] == [2] * 50
    assert made.path.startswith("load-00000-")
    told = outcomes(results)
    assert {outcome.status for outcome in told.values()} == {Status.LOADED}
    assert told["007.csv"].content_hash == content_hash([b"7,x\n-7,y\n"])


def test_a_bad_file_leaves_no_row(world: World, engine: Engine) -> None:
    """A file that fails in its middle has no row in a data file that others share."""
    good = world.put("1.csv", b"1,x\n")
    gone = world.put("2.csv", b"2,x\n")
    cut = world.put("3.csv.gz", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03")
    moved = world.put("4.csv", b"4,x\n")
    last = world.put("5.csv", b"5,x\n")
    (world.stage / "2.csv").unlink()
    (world.stage / "4.csv").write_bytes(b"44,changed\n")
    results = list(engine.run(world.plan([good, gone, cut, moved, last], on_error=CONTINUE)))
    assert sorted(row["a"] for row in world.rows(results)) == [1, 5]
    told = {name: outcome.status for name, outcome in outcomes(results).items()}
    assert told == {
        "1.csv": Status.LOADED,
        "2.csv": Status.FAILED,
        "3.csv.gz": Status.FAILED,
        "4.csv": Status.CHANGED,
        "5.csv": Status.LOADED,
    }


@pytest.mark.parametrize(
    ("policy", "status", "loaded"),
    [
        (CONTINUE, Status.PARTIALLY_LOADED, 8),
        (ErrorPolicy(ErrorMode.SKIP_FILE), Status.FAILED, 0),
        (ErrorPolicy(ErrorMode.SKIP_FILE, 3), Status.PARTIALLY_LOADED, 8),
        (ErrorPolicy(ErrorMode.SKIP_FILE, 2), Status.FAILED, 0),
        (ErrorPolicy(ErrorMode.SKIP_FILE, 1, 20.0), Status.FAILED, 0),
        (ErrorPolicy(ErrorMode.SKIP_FILE, 1, 21.0), Status.PARTIALLY_LOADED, 8),
        (ErrorPolicy(ErrorMode.ABORT), Status.FAILED, 0),
        (ErrorPolicy(ErrorMode.ABORT, 3), Status.PARTIALLY_LOADED, 8),
    ],
    ids=str,
)
def test_policies(world: World, policy: ErrorPolicy, status: Status, loaded: int) -> None:
    """Each ON_ERROR does what it says to a file with 2 errors in 10 rows; counts stay true."""
    from calque.loader.run.engines.local import LocalEngine

    rows = [b"%d,x\n" % n for n in range(8)] + [b"bad,x\n"] * 2
    results = list(
        LocalEngine(1).run(world.plan([world.put("f.csv", b"".join(rows))], on_error=policy))
    )
    told = outcomes(results)["f.csv"]
    assert (told.status, told.rows_loaded, told.error_count) == (status, loaded, 2)
    assert told.rows_parsed == 10
    assert len(world.rows(results)) == loaded
    assert [error.line for error in told.errors] == [9, 10]


def test_partitions(world: World, engine: Engine) -> None:
    """Rows go to their partition's folder; values are spelled as tables expect them."""
    schema = pa.schema([("a", pa.int64()), ("d", pa.date32())])
    target = TargetSchema(schema=schema, partition_columns=("d",))
    files = [world.put("1.csv", b"1,2024-01-01\n2,2024-01-02\n"), world.put("2.csv", b"3,\n")]
    format = CsvFormat(empty_field_as_null=True)
    results = list(engine.run(world.plan(files, target=target, format=format)))
    found = {str(row["d"]): row["a"] for row in world.rows(results)}
    assert found == {"2024-01-01": 1, "2024-01-02": 2, "None": 3}
    folders = sorted(file.path.partition("/")[0] for file in data_files(results))
    assert folders == ["d=2024-01-01", "d=2024-01-02", "d=__HIVE_DEFAULT_PARTITION__"]
    assert "d" not in pq.read_schema(world.table / data_files(results)[0].path).names


def test_metadata_columns_and_field_ids(world: World, engine: Engine) -> None:
    """Columns filled from the file, and field ids in the Parquet file."""
    fields = [
        pa.field("a", pa.int64(), metadata={"PARQUET:field_id": "7"}),
        pa.field("b", pa.string()),
        pa.field("f", pa.string()),
        pa.field("n", pa.int64()),
        pa.field("m", pa.timestamp("us", "UTC")),
        pa.field("l", pa.string()),
    ]
    kinds = {
        "f": MetadataKind.NAME,
        "n": MetadataKind.ROW_NUMBER,
        "m": MetadataKind.LAST_MODIFIED,
        "l": MetadataKind.LOAD_ID,
    }
    columns = tuple(MetadataColumn(name, kind) for name, kind in kinds.items())
    file = world.put("1.csv", b"1,x\nbad,x\n3,y\n")
    plan = world.plan([file], pa.schema(fields), metadata_columns=columns, on_error=CONTINUE)
    results = list(engine.run(plan))
    rows = world.rows(results)
    assert [(row["f"], row["n"], row["l"]) for row in rows] == [
        ("1.csv", 1, "load"),
        ("1.csv", 3, "load"),
    ]
    assert rows[0]["m"] == file.identity.last_modified
    made = pq.ParquetFile(world.table / data_files(results)[0].path)
    assert made.schema_arrow.field("a").metadata[b"PARQUET:field_id"] == b"7"


def test_validation_writes_nothing(world: World, engine: Engine) -> None:
    """VALIDATION_MODE parses and counts, and leaves the table's root as it was."""
    file = world.put("1.csv", b"1,x\nbad,x\n")
    results = list(engine.run(world.plan([file], on_error=CONTINUE, validate_only=True)))
    assert outcomes(results)["1.csv"].error_count == 1
    assert list(world.table.iterdir()) == []
    sample = engine.sample(world.plan([file], on_error=CONTINUE), 5)
    assert sample.to_pylist() == [{"a": 1, "b": "x"}]


def test_infer(world: World, engine: Engine) -> None:
    """The engine tells the schema of staged files."""
    file = world.put("1.csv", b"day,n\n2024-01-01,5\n")
    found = engine.infer([file], CsvFormat(parse_header=True))
    assert found == pa.schema([("day", pa.date32()), ("n", pa.int64())])


def test_empty_files(world: World, engine: Engine) -> None:
    """Empty and header-only files are EMPTY and make no data file."""
    files = [world.put("1.csv", b""), world.put("2.csv", b"a,b\n")]
    results = list(engine.run(world.plan(files, format=CsvFormat(parse_header=True), match="name")))
    assert {outcome.status for outcome in outcomes(results).values()} == {Status.EMPTY}
    assert data_files(results) == [] or all(file.rows == 0 for file in data_files(results))


def fitting(rows: int) -> bytes:
    out = io.BytesIO()
    numbers = list(range(rows))
    table = pa.table({"a": pa.array(numbers, pa.int64()), "b": [f"text {n}" for n in numbers]})
    pq.write_table(table, out, compression="none")
    return out.getvalue()


def test_fitting_parquet_is_copied(world: World, engine: Engine) -> None:
    """A Parquet file that fits is the data file: the same bytes, and only its footer was read."""
    from calque.loader.model.file_formats import ParquetFormat

    data = fitting(120_000)
    file = world.put("1.parquet", data)
    plan = world.plan([file], format=ParquetFormat(), match="name_insensitive")
    results = list(engine.run(plan))
    (made,) = data_files(results)
    assert (world.table / made.path).read_bytes() == data
    assert made.columns["a"] == ColumnStats(0, 0, 119_999)
    assert outcomes(results)["1.parquet"].bytes < len(data) / 10
    assert made.spans[0].rows == outcomes(results)["1.parquet"].rows_loaded == 120_000


@pytest.mark.parametrize(
    "schema",
    [
        pa.schema([("a", pa.int32()), ("b", pa.string())]),
        pa.schema([("b", pa.string()), ("a", pa.int64()), ("c", pa.string())]),
    ],
)
def test_other_parquet_is_read(world: World, schema: pa.Schema) -> None:
    """A Parquet file of other types or columns is decoded, cast and written anew."""
    from calque.loader.model.file_formats import ParquetFormat
    from calque.loader.run.engines.local import LocalEngine

    data = fitting(120_000)
    format = ParquetFormat(missing_field="null")
    plan = world.plan([world.put("1.parquet", data)], schema, format=format, match="name")
    results = list(LocalEngine(1).run(plan))
    assert len(world.rows(results)) == 120_000
    assert pq.read_schema(world.table / data_files(results)[0].path).names == schema.names


def test_vanishing_parquet(world: World, engine: Engine) -> None:
    """A fitting file that changed since it was listed is not copied."""
    from calque.loader.model.file_formats import ParquetFormat

    file = world.put("1.parquet", fitting(120_000))
    (world.stage / "1.parquet").write_bytes(fitting(120_001))
    plan = world.plan([file], format=ParquetFormat(), match="name", on_error=CONTINUE)
    results = list(engine.run(plan))
    assert outcomes(results)["1.parquet"].status in (Status.CHANGED, Status.FAILED)
    assert data_files(results) == []


def test_json(world: World, engine: Engine) -> None:
    """NDJSON runs through the same tasks."""
    file = world.put("1.json", b'{"a":1,"b":"x"}\n{"a":"no"}\n')
    plan = world.plan([file], format=JsonFormat(), match="name", on_error=CONTINUE)
    results = list(engine.run(plan))
    assert world.rows(results) == [{"a": 1, "b": "x"}]
    assert outcomes(results)["1.json"].errors[0].line == 2


def test_types_survive(world: World, engine: Engine) -> None:
    """Dates, instants and text arrive in Parquet as they were."""
    schema = pa.schema([("d", pa.date32()), ("t", pa.timestamp("us", "UTC")), ("s", pa.string())])
    file = world.put("1.csv", "2024-02-29,2024-02-29T12:00:00+02:00,ünï\n".encode())
    results = list(engine.run(replace(world.plan([file], schema))))
    assert world.rows(results) == [
        {"d": date(2024, 2, 29), "t": datetime(2024, 2, 29, 10, tzinfo=UTC), "s": "ünï"}
    ]
    assert AB.names == ["a", "b"]
