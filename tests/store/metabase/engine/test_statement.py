"""No statement of the metabase reads a whole table or joins quadratically, on either database."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.types import ARRAY, BigInteger, Boolean, Integer, LargeBinary, Text

import calque.store.satellite.endpoint
import calque.store.upkeep.timers  # noqa: F401 - and those of upkeep
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.migrate import migrate
from calque.store.metabase.engine.statement import POSTGRES, SQLITE, Statement
from tests.servers.postgres import PostgresServer
from tests.store.joins import UNIQUE_INDEXES, Plan, UniqueIndexes, quadratic_joins
from tests.store.world import THREE_REMOTE, Clock, World

STATEMENTS = [statement for statement in Statement.registry.values() if not statement.whole_table]
# Reading these costs nothing that grows with the objects stored.
FREE_SCANS = re.compile(r"CONSTANT ROW|SCAN (given|hops|parts|target|\(subquery)")


def _parameters(statement: Statement) -> dict[str, Any]:
    return {
        name: _example(bind.type)
        for name, bind in statement.compile(SQLITE).binds.items()
        if bind.required
    }


def _example(kind: object) -> object:
    if isinstance(kind, LargeBinary):
        return b"\0" * 16
    if isinstance(kind, Integer | BigInteger):
        return 1
    if isinstance(kind, Text):
        return "first"
    return 1


def test_the_list_is_complete() -> None:
    """Every statement of every operation is registered, and few may read everything."""
    assert len(STATEMENTS) > 50
    free = {statement.name for statement in Statement.registry.values() if statement.whole_table}
    # Keys of S3 are only known where the gateway was loaded, by another test of this process.
    few = ("all nodes", "every s3 key", "leases that are held")
    assert all(name.startswith("fsck") or name in few for name in free)


@pytest.fixture
def sqlite_world(tmp_path: Path) -> Iterator[World]:
    """A metabase on SQLite with a few rows."""
    clock = Clock()
    database = Database.open(f"sqlite:///{tmp_path / 'plans.db'}", clock=clock)
    migrate(database)
    world = World(database, clock)
    world.upload("a", THREE_REMOTE)
    world.copy(world.at("a"), world.at("b"))
    yield world
    database.close()


def test_no_scan_on_sqlite(sqlite_world: World) -> None:
    """EXPLAIN QUERY PLAN searches by an index wherever it touches a table."""
    guilty: dict[str, list[str]] = {}
    connection = sqlite_world.database.engine.raw_connection()
    driver: Any = connection.driver_connection
    for statement in STATEMENTS:
        if not statement.exists_for(SQLITE):
            continue
        sql = f"EXPLAIN QUERY PLAN {statement.sql(SQLITE)}"
        steps = [row[3] for row in driver.execute(sql, _parameters(statement))]
        scans = [step for step in steps if step.startswith("SCAN") and not FREE_SCANS.search(step)]
        if scans:
            guilty[statement.name] = scans
    connection.close()
    assert guilty == {}


KEYS = ("key", "first", "source_key")


def _names_a_key(statement: Statement, database: str) -> bool:
    return any(name in KEYS for name in statement.compile(database).binds)


def test_keys_are_found_by_index_on_sqlite(sqlite_world: World) -> None:
    """Whoever knows a key, or where to begin, does not go through its bucket."""
    guilty: dict[str, list[str]] = {}
    connection = sqlite_world.database.engine.raw_connection()
    driver: Any = connection.driver_connection
    for statement in STATEMENTS:
        if statement.exists_for(SQLITE) and _names_a_key(statement, SQLITE):
            sql = f"EXPLAIN QUERY PLAN {statement.sql(SQLITE)}"
            steps = [row[3] for row in driver.execute(sql, _parameters(statement))]
            blind = [s for s in steps if "bucket_name=?" in s and "object_key" not in s]
            if blind:
                guilty[statement.name] = blind
    connection.close()
    assert guilty == {}


@pytest.fixture
def unseen(postgres: PostgresServer) -> Iterator[Database]:
    """A metabase of its own: of one that other tests fill, autovacuum keeps statistics."""
    url = postgres.database()
    database = Database.open(url)
    migrate(database)
    yield database
    database.close()
    postgres.drop(url)


def test_no_scan_on_postgres(unseen: Database) -> None:
    """With sequential scans priced out none is left, and every index is entered by its head."""
    guilty: dict[str, list[str]] = {}
    with unseen.engine.connect() as session:
        heads = _prepare(session)
        driver: Any = session.connection.driver_connection
        for statement in STATEMENTS:
            if not statement.exists_for(POSTGRES):
                continue
            lines = _generic_plan(driver, statement)
            if _scans(lines, heads):
                guilty[statement.name] = lines
    assert guilty == {}


FILL = """
INSERT INTO objects SELECT 'project', 'first', decode(md5(n::text), 'hex'), 1,
    decode(md5('s' || n), 'hex'), n, CASE WHEN n % 10 = 0 THEN n END,
    CASE WHEN n % 50 = 0 THEN 1 ELSE 3 END, 1, NULL, NULL, NULL, 1, 1, 1, 1,
    CASE WHEN n % 50 = 0 THEN n END FROM generate_series(1, {count}) n;
INSERT INTO segments SELECT stream_id, p, 1, NULL, NULL, '', '', '', 1, 1, p, NULL, 1, NULL, '', 0
    FROM objects, generate_series(0, {segments} - 1) p;
INSERT INTO segment_copies SELECT decode(md5('s' || n), 'hex'), decode(md5('s' || n + 1), 'hex')
    FROM generate_series(1, {count}, 4) n;
INSERT INTO operations SELECT decode(md5(n::text), 'hex'), 'project', 2, '', n
    FROM generate_series(1, {count}) n;
INSERT INTO freed_segments SELECT decode(md5(n::text), 'hex'), '', n
    FROM generate_series(1, {count}) n;
INSERT INTO segment_slices SELECT decode(md5('s' || n % {groups}), 'hex'), n,
    decode(md5('t' || n % {groups}), 'hex'), n, 0, 1 FROM generate_series(1, {count}) n;
INSERT INTO operation_objects SELECT decode(md5('o' || n % {groups}), 'hex'),
    decode(md5('s' || n), 'hex'), decode(md5('t' || n), 'hex'), decode(md5('k' || n), 'hex'),
    NULL, NULL, NULL, 1, '', '' FROM generate_series(1, {count}) n;
ANALYZE
"""


SIZES = {
    "many small": (20_000, 1, 20_000),
    "fewer large": (2_000, 10, 2_000),
    "one operation, one object of slices": (10_000, 1, 1),
    "few huge": (20, 5_000, 5),
}
"""Objects, segments of each, operations and objects with slices."""


@pytest.fixture
def full(unseen: Database, request: pytest.FixtureRequest) -> Database:
    """A metabase that is full, and whose server has looked at it."""
    param = getattr(request, "param", "many small")
    if param not in SIZES:
        return unseen
    count, segments, groups = SIZES[param]
    with unseen.engine.begin() as session:
        for step in FILL.format(count=count, segments=segments, groups=groups).split(";"):
            session.execute(text(step))
    return unseen


@pytest.mark.parametrize("full", [*SIZES, "never looked at"], indirect=True)
def test_no_quadratic_join_on_postgres(full: Database) -> None:
    """With the statistics of a full table, and before there are any, every join is linear in the
    segments of a stream and in the objects of an operation."""
    guilty: dict[str, list[str]] = {}
    with full.engine.connect() as session:
        unique = _unique_indexes(session)
        driver: Any = session.connection.driver_connection
        for statement in STATEMENTS:
            if statement.exists_for(POSTGRES):
                joins = quadratic_joins(_json_plan(driver, statement), unique)
                if joins:
                    guilty[statement.name] = joins
    assert guilty == {}


@pytest.mark.parametrize("metabase", ["unseen", "full"])
def test_keys_are_found_by_index_on_postgres(metabase: str, request: pytest.FixtureRequest) -> None:
    """Whoever knows a key, or where to begin, neither goes through its bucket nor sorts it."""
    guilty: dict[str, list[str]] = {}
    database: Database = request.getfixturevalue(metabase)
    with database.engine.connect() as session:
        driver: Any = session.connection.driver_connection
        for statement in STATEMENTS:
            if statement.exists_for(POSTGRES) and _names_a_key(statement, POSTGRES):
                lines = _generic_plan(driver, statement)
                blind = [s for s in lines if "bucket_name = " in s and "substr(" not in s]
                blind += [s for s in lines if "Bitmap" in s and "objects_" in s]
                if blind:
                    guilty[statement.name] = lines
    assert guilty == {}


QUADRATIC = {
    "offsets": "UPDATE segments SET plain_offset = running.plain_offset FROM (SELECT position,"
    " sum(plain_size) OVER (ORDER BY position) AS plain_offset FROM segments"
    " WHERE stream_id = $1) AS running"
    " WHERE segments.stream_id = $1 AND segments.position = running.position",
    "pieces": "UPDATE segments SET root_piece_id = original.root_piece_id FROM segments AS original"
    " WHERE segments.stream_id = $1 AND original.stream_id = $1"
    " AND original.position + 0 = segments.position",
}


def test_the_harness_sees_quadratic_joins(full: Database) -> None:
    """Joins that meet each row of a stream with each other one are caught."""
    with full.engine.connect() as session:
        unique = _unique_indexes(session)
        driver: Any = session.connection.driver_connection
        for name, query in QUADRATIC.items():
            plan = _explained(driver, query, ["bytea"], "FORMAT JSON")[0][0]["Plan"]
            assert quadratic_joins(plan, unique), name


def _unique_indexes(session: Connection) -> UniqueIndexes:
    return {row[0]: row[1] for row in session.execute(text(UNIQUE_INDEXES))}


def _json_plan(driver: Any, statement: Statement) -> Plan:
    plan: Plan = _generic_plan(driver, statement, "FORMAT JSON")[0][0]["Plan"]
    return plan


def _generic_plan(driver: Any, statement: Statement, how: str = "FORMAT TEXT") -> list[Any]:
    """The plan that serves whatever the parameters are: the one that the metabase runs."""
    binds = statement.compile(POSTGRES).binds
    kinds = [_sql_type(binds[name].type) for name in statement.names(POSTGRES)]
    return _explained(driver, statement.sql(POSTGRES), kinds, how)


def _explained(driver: Any, query: str, kinds: list[str], how: str) -> list[Any]:
    typed = f"({', '.join(kinds)})" if kinds else ""
    nothing = f"({', '.join(['NULL'] * len(kinds))})" if kinds else ""
    driver.execute(f"PREPARE plan{typed} AS {query}")
    found = [row[0] for row in driver.execute(f"EXPLAIN ({how}) EXECUTE plan{nothing}")]
    driver.execute("DEALLOCATE plan")
    return found


def _sql_type(kind: Any) -> str:
    """What the driver declares a parameter of this type to be."""
    if isinstance(kind, ARRAY):
        return f"{_sql_type(kind.item_type)}[]"
    names = {LargeBinary: "bytea", BigInteger: "bigint", Integer: "integer", Text: "text"}
    names[Boolean] = "boolean"
    # Without a type is only what LIMIT takes.
    return next((name for each, name in names.items() if isinstance(kind, each)), "bigint")


def _prepare(session: Connection) -> dict[str, str]:
    """Ask for generic plans and price sequential scans out; gives the head of every index.

    The tables count as never looked at: of one that is known to be empty any plan is as good.
    """
    session.execute(text("SET enable_seqscan = off"))
    session.execute(text("SET plan_cache_mode = force_generic_plan"))
    session.execute(
        text(
            "UPDATE pg_class SET relpages = 0, reltuples = -1"
            " WHERE relnamespace = 'public'::regnamespace"
        )
    )
    rows = session.execute(
        text(
            "SELECT c.relname, a.attname FROM pg_index i"
            " JOIN pg_class c ON c.oid = i.indexrelid"
            " JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]"
        )
    )
    return {row[0]: row[1] for row in rows}


def _scans(lines: list[str], heads: dict[str, str]) -> bool:
    """Whether a plan reads a table whole: sequentially, or an index not entered by its head."""
    for number, line in enumerate(lines):
        if "Seq Scan on" in line:
            return True
        index = re.search(r"Index (?:Only )?Scan (?:Backward )?(?:using|on) (\w+)", line)
        if index and not _bounded(lines, number, heads[index.group(1)]):
            return True
    return False


def _bounded(lines: list[str], number: int, head: str) -> bool:
    indent = len(lines[number]) - len(lines[number].lstrip())
    for line in lines[number + 1 :]:
        if len(line) - len(line.lstrip()) <= indent:
            break
        if re.search(rf"Index Cond: .*\b{head}\b", line):
            return True
    # The first entry of an index (a LIMIT above) is no scan either.
    return number > 0 and "Limit" in lines[number - 1]


def test_the_harness_sees_scans(sqlite_world: World, unseen: Database) -> None:
    """A statement that does scan is caught on both databases: the check can fail."""
    raw = sqlite_world.database.engine.raw_connection()
    driver: Any = raw.driver_connection
    sql = "EXPLAIN QUERY PLAN SELECT * FROM objects WHERE version = 1"
    steps = [row[3] for row in driver.execute(sql)]
    assert any(step.startswith("SCAN") and not FREE_SCANS.search(step) for step in steps)
    raw.close()
    with unseen.engine.connect() as session:
        heads = _prepare(session)
        for query in (
            "SELECT * FROM objects WHERE version = 1",
            "SELECT * FROM objects WHERE created_at = 1",
            "SELECT * FROM segment_copies ORDER BY stream_id",
        ):
            lines = [row[0] for row in session.execute(text(f"EXPLAIN {query}"))]
            assert _scans(lines, heads), lines
