"""SELECT over staged rows: expressions, metadata, filters, and strict casts at the end."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from calque.errors import DataError, StatementInvalid
from calque.loader.model.file_formats import CsvFormat, JsonFormat, ParquetFormat
from calque.loader.model.outcome import Status
from calque.loader.model.plan import Transformation
from calque.loader.request.option_values import on_error
from calque.loader.run.engines.spark import SparkEngine
from calque.loader.run.formats.refusal import FileRefused
from tests.loader.run.conftest import AB, CONTINUE, World, data_files, outcomes
from tests.loader.run.engines.test_engines import fitting


def select(*expressions: str, where: str | None = None) -> Transformation:
    return Transformation(expressions, ("a", "b"), where)


@pytest.fixture
def engine(spark: Any) -> SparkEngine:
    return SparkEngine(spark)


def test_positions_and_metadata(world: World, engine: SparkEngine) -> None:
    """Columns by number, expressions over them, and the file and row they came from."""
    files = [world.put("1.csv", b"x,1\ny,2\n"), world.put("2.csv", b"z,3\n")]
    chosen = select(
        "CAST(`$2` AS BIGINT) * 10",
        "concat(upper(`$1`), ' ', _metadata_name, ' ', _metadata_row_number)",
    )
    results = list(engine.run(world.plan(files, transformation=chosen)))
    found = sorted((row["a"], row["b"]) for row in world.rows(results))
    assert found == [(10, "X 1.csv 1"), (20, "Y 1.csv 2"), (30, "Z 2.csv 1")]
    told = outcomes(results)
    assert {name: one.rows_loaded for name, one in told.items()} == {"1.csv": 2, "2.csv": 1}
    assert all(one.status is Status.LOADED and one.content_hash for one in told.values())
    assert sum(len(file.spans) for file in data_files(results)) == 2


def test_names_and_where(world: World, engine: SparkEngine) -> None:
    """Names of the header and of JSON fields; WHERE leaves rows out without an error."""
    file = world.put("1.csv", b"n,name\n1,x\n2,y\n")
    plan = world.plan(
        [file],
        format=CsvFormat(parse_header=True),
        transformation=select("CAST(n AS INT)", "name", where="n <> '1'"),
    )
    results = list(engine.run(plan))
    assert world.rows(results) == [{"a": 2, "b": "y"}]
    assert outcomes(results)["1.csv"].rows_parsed == 2
    lines = world.put("1.json", b'{"n":{"deep":5},"name":"x"}\n')
    plan = world.plan(
        [lines], format=JsonFormat(), transformation=select("n.deep", "name"), load_id="two"
    )
    assert world.rows(list(engine.run(plan))) == [{"a": 5, "b": "x"}]


def test_parquet_is_not_copied(world: World, engine: SparkEngine) -> None:
    """A statement that transforms decodes even a file that fits."""
    file = world.put("1.parquet", fitting(120_000))
    plan = world.plan([file], format=ParquetFormat(), transformation=select("a + 1", "b"))
    results = list(engine.run(plan))
    assert sum(file.rows for file in data_files(results)) == 120_000
    assert data_files(results)[0].columns["a"].low == 1


def test_bad_rows(world: World, engine: SparkEngine) -> None:
    """A result that does not fit its column is an error of its row; bad records are counted."""
    file = world.put("1.csv", b"1,x\n2,y,z\n3,w\n")
    chosen = select("CASE WHEN `$1` = '3' THEN 'three' ELSE `$1` END", "`$2`")
    results = list(engine.run(world.plan([file], transformation=chosen, on_error=CONTINUE)))
    told = outcomes(results)["1.csv"]
    assert (told.status, told.rows_loaded, told.error_count) == (Status.PARTIALLY_LOADED, 1, 2)
    assert [(error.record, error.code) for error in told.errors] == [
        (2, "COLUMN_COUNT"),
        (3, "INVALID_VALUE"),
    ]
    assert world.rows(results) == [{"a": 1, "b": "x"}]


def test_a_file_that_fails_midway(world: World, engine: SparkEngine) -> None:
    """Rows that had passed already are taken back when their file turns out to be cut off."""
    import gzip

    packed = gzip.compress(b"".join(b"%d,x%d\n" % (n, n * 7919) for n in range(200_000)))
    files = [world.put("1.csv.gz", packed[:-2000]), world.put("2.csv", b"1,x\n")]
    chosen = select("CAST(`$1` AS BIGINT)", "`$2`")
    results = list(engine.run(world.plan(files, transformation=chosen, on_error=CONTINUE)))
    assert world.rows(results) == [{"a": 1, "b": "x"}]
    assert outcomes(results)["1.csv.gz"].status is Status.FAILED


def test_wrong_expressions(world: World, engine: SparkEngine) -> None:
    """An unknown column is a wrong statement; what fails on a row, below, is bad data."""
    file = world.put("1.csv", b"q,x\n")
    with pytest.raises(StatementInvalid, match="nowhere"):
        list(engine.run(world.plan([file], transformation=select("nowhere", "`$2`"))))


def test_a_failing_expression_has_a_place(world: World, engine: SparkEngine) -> None:
    """File, record and expression of the row on which the SELECT failed are named."""
    good = b"".join(b"%d,x\n" % n for n in range(5000))
    files = [world.put("1.csv", good), world.put("2.csv", good + b"oops,y\n" + good)]
    chosen = select("CAST(`$1` AS BIGINT) + 1", "upper(`$2`)", where="`$2` <> ''")
    with pytest.raises(FileRefused) as caught:
        list(engine.run(world.plan(files, transformation=chosen)))
    assert "record 5001: the expression CAST(`$1` AS BIGINT) + 1 failed" in caught.value.message
    found = caught.value.row_error
    assert (found.file, found.record, found.column) == (files[1].location, 5001, "a")
    assert found.code == "EXPRESSION"
    assert "oops" in (found.raw or "")


@pytest.mark.parametrize("policy", ["CONTINUE", "SKIP_FILE"])
def test_a_failing_expression_fails_its_file_alone(
    world: World, engine: SparkEngine, policy: str
) -> None:
    """Where errors do not end the load, files on which the SELECT fails are FAILED, no other is."""
    bodies = {"1.csv": b"1,x\n", "2.csv": b"2,x\noops,y\n", "3.csv": b"no,x\n", "4.csv": b"4,z\n"}
    files = [world.put(name, body) for name, body in bodies.items()]
    chosen = select("CAST(`$1` AS BIGINT)", "`$2`")
    plan = world.plan(files, transformation=chosen, on_error=on_error(policy))
    results = list(engine.run(plan))
    assert sorted(world.rows(results), key=repr) == [{"a": 1, "b": "x"}, {"a": 4, "b": "z"}]
    told = outcomes(results)
    assert {name: str(one.status) for name, one in told.items()} == {
        "1.csv": "LOADED",
        "2.csv": "FAILED",
        "3.csv": "FAILED",
        "4.csv": "LOADED",
    }
    (error,) = told["2.csv"].errors
    assert (error.record, error.column, error.code) == (2, "a", "EXPRESSION")


def test_no_file_is_left(world: World, engine: SparkEngine) -> None:
    """Where the SELECT fails on every file each of them is FAILED, and nothing is written."""
    file = world.put("3.csv", b"no,x\n")
    chosen = select("CAST(`$1` AS BIGINT)", "`$2`")
    results = list(engine.run(world.plan([file], transformation=chosen, on_error=CONTINUE)))
    assert outcomes(results)["3.csv"].status is Status.FAILED
    assert data_files(results) == []


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_a_file_rewritten_before_its_columns_are_looked_for(
    world: World, engine: SparkEngine, kind: str
) -> None:
    """It is CHANGED, though there is no other that tells the columns."""
    formats = {"csv": CsvFormat(), "json": JsonFormat(), "parquet": ParquetFormat()}
    file = world.put(f"1.{kind}", b"1,x\n" * 4)
    (world.stage / f"1.{kind}").write_bytes(b"2,y\n" * 5)
    plan = world.plan([file], format=formats[kind], transformation=select("1", "2"))
    results = list(engine.run(plan))
    assert outcomes(results)[f"1.{kind}"].status is Status.CHANGED
    assert data_files(results) == []


def test_files_that_tell_no_columns(world: World, engine: SparkEngine) -> None:
    """Bad and vanished files fail alone where errors do not end the load, all of them too."""
    files = [world.put(f"{name}.parquet", b"garbage") for name in "ab"]
    (world.stage / "b.parquet").unlink()
    chosen = select("a", "b")
    plan = world.plan(files, format=ParquetFormat(), transformation=chosen, on_error=CONTINUE)
    results = list(engine.run(plan))
    assert {name: one.status for name, one in outcomes(results).items()} == {
        "a.parquet": Status.FAILED,
        "b.parquet": Status.FAILED,
    }
    with pytest.raises(FileRefused):
        list(engine.run(world.plan(files[:1], format=ParquetFormat(), transformation=chosen)))


def test_a_select_over_empty_files(world: World, engine: SparkEngine) -> None:
    """They are EMPTY, as without a SELECT."""
    plan = world.plan([world.put("1.csv", b"")], transformation=select("`$1`", "`$2`"))
    assert outcomes(list(engine.run(plan)))["1.csv"].status is Status.EMPTY


def test_a_failing_condition_has_a_place(world: World, engine: SparkEngine) -> None:
    """The WHERE of a SELECT is named as well."""
    file = world.put("1.csv", b"1,x\n0,y\n")
    chosen = select("`$1`", "`$2`", where="1 / CAST(`$1` AS INT) > 0")
    with pytest.raises(FileRefused, match=r"record 2: the expression WHERE 1 / .*DIVIDE_BY_ZERO"):
        list(engine.run(world.plan([file], transformation=chosen)))


def test_a_failure_that_hides(
    world: World, engine: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the row is not found in time the files are named in which it is."""
    monkeypatch.setattr("calque.loader.run.transform.locate_error.PATIENCE", -1.0)
    file = world.put("1.csv", b"q,x\n")
    with pytest.raises(DataError, match=r"CAST_INVALID_INPUT.* \(in .*/1\.csv\)"):
        list(engine.run(world.plan([file], transformation=select("CAST(`$1` AS INT)", "`$2`"))))


def test_sample(world: World, engine: SparkEngine) -> None:
    """VALIDATION_MODE = RETURN_n_ROWS shows what the SELECT gives, as the table would have it."""
    file = world.put("1.csv", b"1,x\n2,y\n3,z\n")
    plan = world.plan([file], transformation=select("CAST(`$1` AS INT)", "`$2`"))
    sample = engine.sample(plan, 2)
    assert sample.num_rows == 2
    assert sample.schema == pa.schema(list(AB))
