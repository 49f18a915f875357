"""Every option does something: each case fails if its option is ignored.

A case is run three times: without the option, with it in a statement, with it in ``calque.load``.
What is seen with it must be as told, both ways, and must differ from what is seen without.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError
from sqlalchemy import select

from calque.errors import CalqueError, StatementInvalid
from calque.ledger import open_ledger
from calque.ledger.schema import loads
from calque.loader.api import load, sql
from calque.loader.request.options import COPY, DATABRICKS_COPY, FORMATS, NOTHING
from calque.loader.request.parse import parse
from calque.loader.request.request import LoadRequest
from tests.loader.request.copy_cases import COPY_CASES, loaded
from tests.loader.request.format_cases import FORMAT_CASES
from tests.loader.request.option_case import (
    AB,
    Case,
    Seen,
    World,
    by_keywords,
    by_statement,
    parquet,
    statement,
    world_of,
)

CASES = FORMAT_CASES + COPY_CASES


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_option_is_not_ignored(tmp_path: Path, case: Case) -> None:
    """With the option things are as told, in every spelling; without it they are otherwise."""
    plain = world_of(tmp_path / "plain", case)
    try:
        assert case.see(by_statement(plain, case, None)) != case.expected
    except TableNotFoundError:
        assert case.table is None
    option, *others = case.options.split()
    world = world_of(tmp_path / option, case)
    assert case.see(by_statement(world, case, option)) == case.expected
    for other in others:  # what is read as the same request does the same
        assert read(world, case, other) == read(world, case, option)
    world = world_of(tmp_path / "keywords", case)
    assert case.see(by_keywords(world, case)) == case.expected


def read(world: World, case: Case, option: str) -> LoadRequest:
    """What one spelling of the case asks for, whatever its words."""
    return replace(parse(statement(world, case, option)), text=None)


def test_every_option_has_a_case() -> None:
    """No option is known to the parser without a test that fails when it is ignored."""
    told = {(case.kind, option) for case in CASES for option in case.options.split()}
    like = {"TSV": "CSV", "TEXT": "CSV", "NDJSON": "JSON"}
    like |= dict.fromkeys(("MYSQL", "POSTGRESQL", "HIVE"), "CSV")
    known = {(None, option) for option, (target, _) in COPY.items() if target != NOTHING}
    known |= {
        (like.get(kind, kind), option)
        for kind, (_, options, _) in FORMATS.items()
        for option, (target, _) in options.items()
        if target != NOTHING
    }
    assert known == told
    assert {target for target, _ in DATABRICKS_COPY.values()} == {"force", "evolve"}


def test_every_keyword_has_a_case() -> None:
    """The same for the keywords of ``calque.load``."""
    told = {name for case in COPY_CASES for name in case.keywords}
    elsewhere = {
        *("stage", "into", "format", "format_options", "settings"),  # in every case
        *("columns", "schema", "lease_seconds"),  # below
        *("spark", "progress"),  # in tests/loader/run/engines
    }
    assert set(inspect.signature(load).parameters) == told | elsewhere


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(tmp_path)
    made.stage.mkdir()
    (made.stage / "f.csv").write_text("a,b\nx,1\n")
    return made


def test_databricks_options(world: World) -> None:
    """FORCE and mergeSchema of COPY_OPTIONS; TRUE for what is done anyway, never FALSE."""
    loaded(world)
    (world.stage / "f.csv").write_text("a,b,c\nx,1,2\n")
    copy = f"COPY INTO delta.`{world.table}` FROM '{world.stage}/' FILEFORMAT = CSV "
    options = "FORMAT_OPTIONS ('header' = 'true', 'inferSchema' = 'true', 'mergeSchema' = 'true') "
    more = "COPY_OPTIONS ('force' = 'true', 'mergeSchema' = 'true')"
    sql(copy + options + more, settings=world.settings)
    assert Seen(world, None, None).rows == [("x", 1, 2), ("x", 1, None)]
    for name in ("inferSchema", "mergeSchema"):
        with pytest.raises(StatementInvalid, match="cannot be turned off"):
            parse(f"{copy} FORMAT_OPTIONS ('{name}' = 'false')")


def test_by_position(world: World) -> None:
    """BY POSITION fills columns in the order of the file, whatever it names them."""
    (world.stage / "f.csv").unlink()
    (world.stage / "f.parquet").write_bytes(parquet(pa.table({"b": ["x"], "a": [1]})))
    DeltaTable.create(str(world.table), AB)
    copy = "COPY INTO '{0}' {1} FROM '{2}/' FILEFORMAT = PARQUET"
    with pytest.raises(CalqueError):
        sql(copy.format(world.table, "", world.stage), settings=world.settings)
    sql(copy.format(world.table, "BY POSITION", world.stage), settings=world.settings)
    assert Seen(world, None, None).rows == [("x", 1)]


def test_columns_and_schema(world: World) -> None:
    """The column list says what fields fill; the schema is that of the table to be made."""
    (world.stage / "f.csv").write_text("1,x\n")
    wide = pa.schema([("a", pa.string()), ("b", pa.int32()), ("c", pa.string())])
    load(
        f"{world.stage}/",
        str(world.table),
        format="csv",
        columns=["b", "a"],
        schema=wide,
        settings=world.settings,
    )
    assert Seen(world, None, None).rows == [("x", 1, None)]
    assert DeltaTable(str(world.table)).to_pyarrow_table().schema.field("b").type == pa.int32()


def test_lease_seconds(world: World) -> None:
    """A load is held for as long as was asked."""
    load(f"{world.stage}/", str(world.table), lease_seconds=777, settings=world.settings)
    with open_ledger(str(world.folder / "ledger.db")) as ledger, ledger.read() as connection:
        row = connection.execute(select(loads.c.started_at, loads.c.lease_until)).one()
    assert 777 <= (row.lease_until - row.started_at) / 1e6 < 800


@pytest.mark.parametrize("kind", ["TSV", "TEXT"])
def test_tab_separated(world: World, kind: str) -> None:
    """TSV and TEXT are delimited by tabs unless told otherwise."""
    (world.stage / "f.csv").write_text("x\t1\n")
    DeltaTable.create(str(world.table), AB)
    load(f"{world.stage}/", str(world.table), format=kind, settings=world.settings)
    assert Seen(world, None, None).rows == [("x", 1)]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"partition_by": ["b"]}, "partitioned by nothing, not by b"),
        ({"rescue_column": "b"}, "b is BIGINT and cannot hold TEXT"),
        ({"rescue_column": "nope"}, "no column nope"),
        ({"metadata_columns": {"b": "file"}}, "b is BIGINT and cannot hold TEXT"),
        ({"metadata_columns": {"nope": "file"}}, "no column nope"),
        ({"purge": True, "archive": "old/"}, "choose one"),
        ({"format": "json", "match_by": "none"}, "names and no positions"),
        ({"format": "csv", "format_options": {"DATE_FORMAT": "DD-MON-YYYY"}}, "MON"),
        ({"rescue_column": "a", "columns": ["a"]}, "named twice"),
        ({"min_age": float("nan")}, "numbers of seconds"),
        ({"lease_seconds": float("inf")}, "numbers of seconds"),
    ],
)
def test_what_could_do_nothing_is_refused(world: World, options: dict[str, Any], why: str) -> None:
    """An option that cannot have its effect on this table or format is an error, not a shrug."""
    loaded(world)
    (world.stage / "g.csv").write_text("a,b\ny,2\n")
    with pytest.raises(StatementInvalid, match=why):
        load(f"{world.stage}/", str(world.table), settings=world.settings, **options)
    assert Seen(world, None, None).rows == [("x", 1)]
