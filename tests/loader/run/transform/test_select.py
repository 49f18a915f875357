"""The SELECT of a statement as people write it, from its text to the rows."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from calque.errors import DataError, StatementInvalid
from calque.loader.model.staged_file import StagedFile
from calque.loader.report import Report
from calque.loader.request.parse import parse
from calque.loader.run.engines.spark import SparkEngine
from tests.loader.loader import Place
from tests.loader.run.conftest import World, outcomes
from tests.loader.world import write_files

RECORDS = [
    {"id": 1, "name": "x", "deep": {"tags": ["p", "q"], "at": {"n": 7}}, "list": [{"k": 1}]},
    {"id": 2, "name": "y", "deep": {"tags": [], "at": None}, "list": []},
]
PATHS = "$1:id::INT, $1:name::STRING || $1:deep.tags[1] || $1:deep:at.n || $1:list[0].k"


@pytest.fixture
def engine(spark: Any) -> SparkEngine:
    return SparkEngine(spark)


def select(
    world: World, engine: SparkEngine, files: list[StagedFile], chosen: str, kind: str
) -> list[tuple[Any, Any]]:
    """The rows that ``SELECT chosen`` makes of the files, for the columns ``a`` and ``b``."""
    clause = kind if "FILEFORMAT" in kind else f"FILE_FORMAT = (TYPE = {kind})"
    request = parse(f"COPY INTO t FROM (SELECT {chosen} FROM 'in' t) {clause}")
    assert request.transformation is not None
    assert request.format is not None
    schema = pa.schema([("a", pa.decimal128(38, 6)), ("b", pa.string())])
    plan = world.plan(
        files,
        schema,
        format=request.format,
        transformation=replace(request.transformation, columns=("a", "b")),
    )
    results = list(engine.run(plan))
    assert all(one.error_count == 0 for one in outcomes(results).values())
    return sorted((row["a"], row["b"]) for row in world.rows(results))


def put_lines(world: World, *records: object) -> StagedFile:
    return world.put("1.json", b"".join(json.dumps(one).encode() + b"\n" for one in records))


def test_one_is_the_record_of_json(world: World, engine: SparkEngine) -> None:
    """``$1:field`` is a field of the record, also inside of objects and arrays; NULL beyond."""
    file = put_lines(world, *RECORDS)
    assert select(world, engine, [file], PATHS, "JSON") == [(1, "xq71"), (2, None)]
    plain = "t.$1:id, $1['name'] || GET($1, 'deep')['tags'][0]"
    assert select(world, engine, [file], plain, "NDJSON") == [(1, "xp"), (2, None)]


@pytest.mark.parametrize("kind", ["PARQUET", "ORC", "AVRO"])
def test_one_is_the_record_of_columns(world: World, engine: SparkEngine, kind: str) -> None:
    """The same paths into a columnar file."""
    table = pa.Table.from_pylist(RECORDS)
    path = world.stage / f"1.{kind.lower()}"
    if kind == "PARQUET":
        pq.write_table(table, path)
    elif kind == "ORC":
        pyarrow.orc.write_table(table, path)
    else:
        write_avro(path)
    file = world.look(path.name)
    assert select(world, engine, [file], PATHS, kind) == [(1, "xq71"), (2, None)]
    with pytest.raises(StatementInvalid, match=r"\$1:nothing.*has a field 'nothing'"):
        select(world, engine, [file], "$1:id, $1:nothing", kind)


def write_avro(path: Any) -> None:
    import fastavro

    at = {"type": "record", "name": "at", "fields": [{"name": "n", "type": "long"}]}
    deep = {
        "type": "record",
        "name": "deep",
        "fields": [
            {"name": "tags", "type": {"type": "array", "items": "string"}},
            {"name": "at", "type": ["null", at]},
        ],
    }
    item = {"type": "record", "name": "item", "fields": [{"name": "k", "type": "long"}]}
    schema = {
        "type": "record",
        "name": "row",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "name", "type": "string"},
            {"name": "deep", "type": deep},
            {"name": "list", "type": {"type": "array", "items": item}},
        ],
    }
    with path.open("wb") as out:
        fastavro.writer(out, schema, RECORDS)


def test_one_is_the_record_of_xml(world: World, engine: SparkEngine) -> None:
    """Elements and attributes of a row by the path to them."""
    file = world.put("1.xml", b'<r><row n="5"><a><b>x</b></a></row></r>')
    assert select(world, engine, [file], "$1:_n::INT, $1:a.b", "XML") == [(5, "x")]


def test_a_field_that_comes_late(world: World, engine: SparkEngine) -> None:
    """A field that no looked-at record has is NULL there, and not lost where it comes at last."""
    many = [{"id": n, "in": {"x": 1}} for n in range(10_001)]
    file = put_lines(world, *many, {"id": -1, "in": {"x": 1, "late": [5, {"y": 6}]}, "tip": 2.5})
    chosen = "$1:id, $1:tip || ' ' || $1:in.late[1].y || coalesce($1:nowhere.x, ' none')"
    found = select(world, engine, [file], chosen, "JSON")
    assert (found[0], found[-1]) == ((-1, "2.5 6 none"), (10_000, None))


def test_names_that_need_quotes(world: World, engine: SparkEngine) -> None:
    """Any name may stand in a path; case matters only where names differ by nothing else."""
    file = put_lines(world, {"My `Field`": {'it\'s "so"': 1, "é.x": "y"}, "ID": 3})
    chosen = """$1:id, $1:"My `Field`"."é.x" || $1:"My `Field`"['it\\'s "so"']"""
    assert select(world, engine, [file], chosen, "JSON") == [(3, "y1")]


def test_whole_records_are_refused(world: World, engine: SparkEngine) -> None:
    """``$1`` by itself and ``$2`` mean nothing where a record has names."""
    file = put_lines(world, {"a": 1})
    with pytest.raises(StatementInvalid, match="whole record"):
        select(world, engine, [file], "$1, 'x'", "JSON")
    with pytest.raises(StatementInvalid, match=r"no \$2"):
        select(world, engine, [file], "$2, 'x'", "JSON")
    with pytest.raises(StatementInvalid, match=r"\$2:a.*one column"):
        select(world, engine, [file], "$2:a, 'x'", "JSON")


def test_json_inside_of_text(world: World, engine: SparkEngine) -> None:
    """A path into a column of text reads it as JSON; text that is none is an error with a place."""
    file = world.put("1.csv", b'7|{"a": {"b": [10, 20.5]}}\n')
    spelled = ("$2:a.b[1]", "PARSE_JSON($2):a.b[1]", "PARSE_JSON($2):a['b'][1]")
    chosen = f"$1::INT, concat_ws(' ', {', '.join(f'{one}::STRING' for one in spelled)})"
    assert select(world, engine, [file], chosen, "CSV FIELD_DELIMITER = '|' QUOTE = NONE") == [
        (7, "20.5 20.5 20.5")
    ]
    bad = world.put("2.csv", b"7|{}\n8|{oops\n")
    with pytest.raises(DataError, match=r"record 2: .*MALFORMED_RECORD"):
        select(world, engine, [bad], "$1, $2:a", "CSV FIELD_DELIMITER = '|' QUOTE = NONE")


def test_places_of_text(world: World, engine: SparkEngine) -> None:
    """``$1`` and, as Databricks counts, ``_c0`` are the first column; with a header ``$1`` too."""
    file = world.put("1.csv", b"1,x\n2,y\n")
    assert select(world, engine, [file], "_c0::INT, _c1", "FILEFORMAT = CSV") == [
        (1, "x"),
        (2, "y"),
    ]
    assert select(world, engine, [file], "_c0, $2", "CSV") == [(1, "x"), (2, "y")]
    named = world.put("2.csv", b"n,_c0\n1,x\n")
    assert select(world, engine, [named], "$1, _c0", "CSV PARSE_HEADER = TRUE") == [(1, "x")]


def test_struct_columns_by_path(world: World, engine: SparkEngine) -> None:
    """``b:x[1]`` on an inferred struct, in both spellings of a statement."""
    file = put_lines(world, {"n": 1, "b": {"x": ["p", "q"]}})
    for kind in ("JSON", "FILEFORMAT = JSON"):
        assert select(world, engine, [file], "n, b:x[1]", kind) == [(1, "q")]


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_strict_on_any_session(world: World, spark: SparkSession, ansi: str) -> None:
    """Bad casts and overflows are errors whatever the session says, which stays as it was."""
    theirs = spark.newSession()
    theirs.conf.set("spark.sql.ansi.enabled", ansi)
    theirs.conf.set("spark.sql.caseSensitive", "true")
    theirs.udf.register("their_own", lambda text: text and text[::-1], "string")
    before, active = theirs.conf.getAll, SparkSession.getActiveSession()
    engine = SparkEngine(theirs)
    bad = world.put("1.csv", b"1,x\noops,y\n")
    with pytest.raises(DataError, match=r"record 2: .*CAST_INVALID_INPUT"):
        select(world, engine, [bad], "$1::INT, $2", "CSV")
    big = world.put("2.csv", b"9223372036854775807,x\n")
    with pytest.raises(DataError, match=r"record 1: .*ARITHMETIC_OVERFLOW"):
        select(world, engine, [big], "$1::BIGINT + 1, $2", "CSV")
    good = world.put("3.csv", b"1,xyz\n")
    assert select(world, engine, [good], "$1::INT, their_own($2)", "CSV") == [(1, "zyx")]
    assert theirs.conf.getAll == before
    assert SparkSession.getActiveSession() is active


def test_numbers_are_exact(world: World, engine: SparkEngine) -> None:
    """TO_NUMBER and its kin keep every digit; TRY_ gives NULL for what is no number."""
    long, fine = "12345678901234567890123456", "12345678901234567890.123456"
    file = world.put("1.csv", f"{long},{fine}\n".encode())
    assert select(world, engine, [file], "TO_NUMBER($1), TO_DECIMAL($2, 38, 6)", "CSV") == [
        (Decimal(long), fine)
    ]
    tried = (
        "coalesce(TRY_TO_DECIMAL($2, 30, 6), TRY_TO_NUMBER('x', 9, 1))",
        "TRY_TO_NUMERIC('x')",
        "TRY_TO_DATE('x', 'DD/MM/YYYY')",
        "TO_NUMBER('1,234.5', '9,999.9', 9, 1)",
        "TRY_TO_BOOLEAN('x')",
    )
    told = ", ' ', ".join(f"coalesce(({one})::STRING, 'none')" for one in tried)
    assert select(world, engine, [file], f"TRY_TO_NUMBER($1), concat({told})", "CSV") == [
        (Decimal(long), f"{fine} none none 1234.5 none")
    ]
    with pytest.raises(DataError, match="record 1"):
        select(world, engine, [file], "TO_NUMBER('x'), $2", "CSV")


def test_a_select_makes_the_table(tmp_path: Path, engine: SparkEngine) -> None:
    """Casts tell the types of a new table and aliases its names; without names it is refused."""
    place = Place(tmp_path, "delta", str(tmp_path / "ledger.db"))
    write_files(place.stage, 1)

    def load(chosen: str, columns: str = "") -> Report:
        text = f"COPY INTO t {columns} FROM (SELECT {chosen} FROM 'in') FILE_FORMAT = (TYPE = CSV "
        asked = parse(text + "PARSE_HEADER = TRUE)")
        return place.load(
            engine=engine,
            transformation=asked.transformation,
            format=asked.format,
            columns=asked.columns,
        )

    with pytest.raises(StatementInvalid, match="does not name its columns"):
        load("id::INT, name")
    with pytest.raises(StatementInvalid, match=r"2 columns are listed .* 1 expression"):
        load("id::INT", "(id, name)")
    with pytest.raises(StatementInvalid, match="names columns twice: n"):
        load("id::INT AS n, name AS n")
    load("id::NUMBER(9, 2) AS n, name, '2026-01-02'::DATE", "(n, name, day)")
    found = place.delta_table().to_pyarrow_table()
    assert {field.name: field.type for field in found.schema} == {
        "n": pa.decimal128(9, 2),
        "name": pa.string(),
        "day": pa.date32(),
    }
    assert found.num_rows == 4
    write_files(place.stage, 1, first=1)
    with pytest.raises(StatementInvalid, match="2 expressions for 3 columns"):
        load("id, name")
    assert load("id AS n, name AS name").rows_loaded == 4


def test_from_any_thread(world: World, spark: SparkSession) -> None:
    """A SELECT runs in a thread that never saw Spark, without anyone watching its progress."""
    file = world.put("1.csv", b"1,x\n")
    found: list[object] = []

    def run() -> None:
        try:
            found.append(select(world, SparkEngine(spark.newSession()), [file], "$1, $2", "CSV"))
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [[(1, "x")]]
