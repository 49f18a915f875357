"""Migrations, connections, and what the databases' errors become."""

from __future__ import annotations

import os
import re
import sqlite3
import threading
from pathlib import Path

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import inspect, text

from calque.databases.schema_steps import HEAD
from calque.errors import (
    ConfigInvalid,
    FailedPrecondition,
    IntegrityError,
    PermissionDenied,
    ResourceExhausted,
    Unavailable,
    Unexpected,
)
from calque.store.metabase.accounts.buckets import BUCKET_EXISTS
from calque.store.metabase.accounts.create_bucket import INSERT_BUCKET
from calque.store.metabase.engine.database import MAX_TRIES, Database
from calque.store.metabase.engine.errors import Disturbed, database_error, disturbance_of
from calque.store.metabase.engine.migrate import current_revision, migrate, revisions
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model import packed_pieces as pieces
from calque.store.metabase.model.records import Encryption, Position, Redundancy
from calque.store.metabase.model.schema import metadata, segments
from calque.store.metabase.streams.given_streams import give_streams
from calque.store.metabase.streams.promotion import DELETE_SEGMENTS
from tests.servers.postgres import PostgresServer
from tests.store.world import World, in_parallel


@pytest.fixture(params=["sqlite", "postgresql"])
def blank_url(request: pytest.FixtureRequest, tmp_path: Path, postgres: PostgresServer) -> str:
    """A database without any table."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'blank.db'}"
    return postgres.database()


@pytest.mark.filterwarnings("ignore:autogenerate skipping")
def test_migrations_give_the_schema(blank_url: str) -> None:
    """After all steps the tables are exactly those the code describes; again is nothing."""
    database = Database.open(blank_url)
    for revision in (*revisions(), HEAD):
        migrate(database, revision)
    assert current_revision(database) == revisions()[-1]
    # Of indexes that one database has, Alembic knows nothing; of expressions not what they mean.
    own = {
        index.name
        for table in metadata.tables.values()
        for index in table.indexes
        if index._ddl_if is not None
    }
    options = {"include_name": lambda name, kind, _: name not in own,
               "include_object": lambda _, name, *rest: name not in own}  # fmt: skip
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []
    database.close()


def test_migrations_give_the_indexes(postgres: PostgresServer) -> None:
    """On PostgreSQL the indexes, expressions and all, are those that the code describes."""
    stepped, described = (Database.open(postgres.database()) for _ in range(2))
    for revision in revisions():
        migrate(stepped, revision)
    metadata.create_all(described.engine)
    definitions = []
    for database in (stepped, described):
        with database.engine.connect() as connection:
            query = text("SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'")
            definitions.append(set(connection.execute(query).scalars()))
        database.close()
    assert definitions[1] <= definitions[0]
    (version,) = definitions[0] - definitions[1]
    assert "alembic_version" in version


def test_segment_copies_is_a_step_of_its_own(blank_url: str) -> None:
    """A store without copies is brought to the reference table by one step."""
    database = Database.open(blank_url)
    migrate(database, "0001")
    assert "segment_copies" not in inspect(database.engine).get_table_names()
    migrate(database, "0002")
    assert inspect(database.engine).get_pk_constraint("segment_copies")["constrained_columns"] == [
        "stream_id"
    ]
    indexes = inspect(database.engine).get_indexes("segment_copies")
    indexed = [index["column_names"] for index in indexes]
    assert ["ancestor_stream_id"] in indexed
    migrate(database)
    database.close()


def test_several_migrate_at_once(blank_url: str) -> None:
    """Processes that start together queue for the migration."""

    def start() -> None:
        database = Database.open(blank_url)
        migrate(database)
        database.close()

    assert in_parallel([start] * 4, threads=4) == [None] * 4


def test_a_newer_schema_is_refused(blank_url: str) -> None:
    """A database of a later release is left alone."""
    database = Database.open(blank_url)
    migrate(database)
    with database.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(FailedPrecondition, match="newer calque"):
        migrate(database)
    database.close()


@pytest.mark.parametrize("how", ["DROP TABLE alembic_version", "DELETE FROM alembic_version"])
def test_a_lost_note_of_the_schema(blank_url: str, how: str) -> None:
    """Tables without their version are left alone; what to write is said, and helps."""
    database = Database.open(blank_url)
    migrate(database)
    with database.engine.begin() as connection:
        connection.execute(text(how))
    with pytest.raises(FailedPrecondition, match="alembic_version") as caught:
        migrate(database)
    statements = re.search(r"(CREATE .*\)); (INSERT .*\)),", caught.value.hint or "")
    assert statements is not None
    with database.engine.begin() as connection:
        connection.execute(text("DROP TABLE IF EXISTS alembic_version"))
        for statement in statements.groups():
            connection.execute(text(statement))
    migrate(database)
    assert current_revision(database) == revisions()[-1]
    database.close()


@pytest.mark.parametrize("url", ["mysql://x/y", "nonsense", "sqlite://", "sqlite:///:memory:"])
def test_urls_that_cannot_hold_a_metabase(url: str) -> None:
    """Another database, or none, is a configuration error."""
    with pytest.raises(ConfigInvalid):
        Database.open(url)


def test_sqlite_is_durable(tmp_path: Path) -> None:
    """Write-ahead log and a sync at every commit."""
    database = Database.open(f"sqlite:///{tmp_path / 'meta.db'}")
    with database.engine.connect() as connection:
        assert connection.execute(text("PRAGMA journal_mode")).scalar() == "wal"
        assert connection.execute(text("PRAGMA synchronous")).scalar() == 2
    database.close()


def test_a_transaction_stays_on_its_connection(world: World) -> None:
    """Statements of one transaction are invisible to others until it commits, then visible."""
    seen: list[int] = []

    def look(transaction: Transaction) -> int:
        place = {"project_id": world.project_id, "bucket": "fresh"}
        return len(transaction.rows(BUCKET_EXISTS, place))

    def work(transaction: Transaction) -> None:
        row = {"project_id": world.project_id, "name": "fresh", "created_at": 1, "placement": 0}
        transaction.run(INSERT_BUCKET, row)
        assert look(transaction) == 1
        other = threading.Thread(target=lambda: seen.append(world.database.read(look)))
        other.start()
        other.join()

    world.database.write(work)
    seen.append(world.database.read(look))
    assert seen == [0, 1]


def test_the_engine_has_transactions_too(world: World) -> None:
    """Who uses the engine itself gets all or nothing, on SQLite as well."""
    record = world.upload("a")

    def work() -> None:
        with world.database.engine.begin() as connection:
            connection.execute(segments.delete().where(segments.c.stream_id == record.stream_id))
            raise KeyError("stop")

    with world.unchanged(KeyError):
        work()


def test_an_error_leaves_nothing(world: World) -> None:
    """Whatever was written before an error is gone."""

    def work(transaction: Transaction) -> None:
        transaction.run(DELETE_SEGMENTS, give_streams(transaction, [record.stream_id]))
        raise KeyError("stop")

    record = world.upload("a")
    with world.unchanged(KeyError):
        world.database.write(work)


def test_disturbances_are_retried_with_a_bound(world: World) -> None:
    """A transaction that is always disturbed gives up and says so."""
    tries = []

    def work(_transaction: Transaction) -> None:
        tries.append(1)
        raise Disturbed("again")

    with pytest.raises(Unavailable, match="too busy"):
        world.database.write(work)
    assert len(tries) == MAX_TRIES


def test_sqlite_busy_is_retried(tmp_path: Path) -> None:
    """A writer of another process is waited for."""
    database = Database.open(f"sqlite:///{tmp_path / 'meta.db'}")
    migrate(database)
    other = sqlite3.connect(tmp_path / "meta.db", isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    timer = threading.Timer(0.3, lambda: other.execute("COMMIT"))
    timer.start()
    assert database.write(lambda transaction: transaction.now) > 0
    timer.join()
    other.close()
    database.close()


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("08006", Unavailable),
        ("28P01", PermissionDenied),
        ("53100", ResourceExhausted),
        ("53300", ResourceExhausted),
        ("57P01", Unavailable),
        ("58030", Unavailable),
        ("XX001", IntegrityError),
        ("42P01", Unexpected),
    ],
)
def test_postgres_errors(state: str, kind: type[Exception]) -> None:
    """Classes of SQLSTATE become our kinds, without the server's words."""
    foreign = psycopg.errors.lookup(state)("secret details")
    mapped = database_error(foreign)
    assert type(mapped) is kind
    assert "secret" not in str(mapped)


def test_what_is_retried() -> None:
    """Serialization, deadlock and a row inserted twice on PostgreSQL, busy on SQLite."""
    for state in ("40001", "40P01", "23505"):
        assert disturbance_of(psycopg.errors.lookup(state)("x"))
    assert disturbance_of(psycopg.errors.lookup("23502")("x")) is None
    assert disturbance_of(ValueError("x")) is None


def test_sqlite_errors(tmp_path: Path) -> None:
    """A file that is no database, and one that cannot be opened."""
    path = tmp_path / "broken.db"
    path.write_bytes(os.urandom(8192))
    database = Database.open(f"sqlite:///{path}")
    with pytest.raises(IntegrityError):
        database.read(lambda transaction: transaction.now)
    database.close()
    with pytest.raises(ConfigInvalid, match="No such file"):
        Database.open(f"sqlite:///{tmp_path / 'no' / 'such' / 'dir.db'}")


def test_postgres_that_is_not_there(tmp_path: Path) -> None:
    """A server that does not answer is Unavailable."""
    database = Database.open(f"postgresql://nobody@/none?host={tmp_path}")
    with pytest.raises(Unavailable):
        database.read(lambda transaction: transaction.now)
    database.close()


@given(
    st.dictionaries(st.integers(0, 200), st.integers(1, 2**31 - 1), min_size=1, max_size=120)
    | st.dictionaries(st.integers(0, 140), st.integers(1, 127), min_size=1, max_size=40),
)
def test_pieces_round_trip(placed: dict[int, int]) -> None:
    """Any pieces come back, by number."""
    assert pieces.unpack(pieces.pack(placed.items())) == sorted(placed.items())


@pytest.mark.parametrize(
    "packed", [b"", b"\x01", b"\x02", b"\x01\x80", b"\x01\x00", b"\x01\x00\x01\x02"]
)
def test_damaged_pieces(packed: bytes) -> None:
    """Pieces that cannot be read are an integrity error."""
    with pytest.raises(IntegrityError):
        pieces.unpack(packed)


@given(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1))
def test_packed_values_round_trip(a: int, b: int) -> None:
    """Positions, encryption and redundancy survive their packed numbers."""
    assert Position.decode(Position(a, b).encode()) == (a, b)
    assert Encryption.decode(Encryption(a % 100, b).encode()) == (a % 100, b)
    scheme = Redundancy(a, b % 256, a % 256, 7, 255)
    assert Redundancy.decode(scheme.encode()) == scheme
