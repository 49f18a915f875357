"""Connections and transactions: the only place that executes SQL.

Promises:

- every transaction, reading ones too, runs on a connection of its own from the pool, and
  all its statements on that one connection;
- a reading transaction sees one snapshot; a writing one on SQLite holds the write lock
  from its first statement, on PostgreSQL it locks rows in the order of ``locks.py``;
- a committed transaction is on the disk (``synchronous=FULL``, ``synchronous_commit``);
- what two transactions did to each other (busy, deadlock, serialization, a row inserted
  twice) is retried a bounded number of times; nothing of the failed try remains.
"""

from __future__ import annotations

import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlalchemy import Connection, create_engine, event
from sqlalchemy.engine import URL, Engine, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from calque.errors import ConfigInvalid, MissingExtra, Unavailable
from calque.store.metabase.faults import Disturbed, database_error, disturbed
from calque.store.metabase.statement import POSTGRES, SQLITE, Statement
from calque.store.metabase.values import now_us

T = TypeVar("T")
Parameters = Mapping[str, Any]

MAX_TRIES = 12
BUSY_TIMEOUT_MS = 10_000
POOL_SIZE = 16
OVERFLOW = 4
BEGIN_MODE = "sqlite_begin_mode"
"""Execution option of an engine's connection: how its transactions begin on SQLite."""


class Transaction:
    """One open transaction; ``now`` is its time, read once."""

    def __init__(self, connection: Any, dialect: str, now: int) -> None:
        self._connection = connection
        self.dialect = dialect
        self.now = now

    def rows(self, statement: Statement, parameters: Parameters) -> list[Any]:
        """Every row that ``statement`` gives."""
        cursor = self._connection.execute(statement.sql(self.dialect), parameters)
        found: list[Any] = cursor.fetchall()
        return found

    def row(self, statement: Statement, parameters: Parameters) -> Any | None:
        """The first row, or ``None``."""
        return self._connection.execute(statement.sql(self.dialect), parameters).fetchone()

    def run(self, statement: Statement, parameters: Parameters) -> int:
        """Execute; returns how many rows it changed."""
        changed: int = self._connection.execute(statement.sql(self.dialect), parameters).rowcount
        return changed

    def batch(self, work: Sequence[tuple[Statement, Parameters]]) -> list[list[Any]]:
        """Execute in order and give the rows of each; PostgreSQL answers all in one trip."""
        if self.dialect == SQLITE:
            return [self.rows(statement, parameters) for statement, parameters in work]
        with self._connection.pipeline():
            cursors = [
                self._connection.execute(statement.sql(self.dialect), parameters)
                for statement, parameters in work
            ]
        return [cursor.fetchall() if cursor.pgresult.nfields else [] for cursor in cursors]

    def run_batch(self, work: Sequence[tuple[Statement, Parameters]]) -> list[int]:
        """Execute in order and tell how many rows each changed."""
        if self.dialect == SQLITE:
            return [self.run(statement, parameters) for statement, parameters in work]
        with self._connection.pipeline():
            cursors = [
                self._connection.execute(statement.sql(self.dialect), parameters)
                for statement, parameters in work
            ]
        return [cursor.rowcount for cursor in cursors]

    def run_many(self, statement: Statement, rows: Sequence[Parameters]) -> None:
        """Execute once for each of ``rows``."""
        self._connection.cursor().executemany(statement.sql(self.dialect), rows)


class Database:
    """A metabase's database: an engine, the pool behind it and the rules above."""

    def __init__(
        self,
        engine: Engine,
        *,
        readers: Engine | None = None,
        clock: Callable[[], int] = now_us,
    ) -> None:
        self.engine = engine
        self.dialect = engine.dialect.name
        # PostgreSQL connections that only ever read one snapshot at a time.
        self._readers = readers or engine
        self.clock = clock
        # Writers of one process queue here rather than in SQLite's sleeping busy handler.
        self._writer = threading.Lock() if self.dialect == SQLITE else None

    @classmethod
    def open(cls, url: str, *, clock: Callable[[], int] = now_us) -> Database:
        """Connect to ``sqlite:///path`` or ``postgresql://…``; does not migrate."""
        engine = _engine(url)
        if engine.dialect.name == SQLITE:
            return cls(engine, clock=clock)
        readers = _postgres_engine(engine.url, read_only=True)
        return cls(engine, readers=readers, clock=clock)

    def close(self) -> None:
        """Close every pooled connection."""
        self.engine.dispose()
        self._readers.dispose()

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Run ``work`` in one read-only snapshot."""
        return self._tries(work, self._reading)

    def look(self, statement: Statement, parameters: Parameters) -> list[Any]:
        """The rows of one reading statement: a snapshot by itself, in a single trip."""
        return self._tries(lambda looking: looking.rows(statement, parameters), self._looking)

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Run ``work`` and commit; on any error nothing of it remains.

        ``work`` may run several times, so it must not have effects of its own.
        """
        return self._tries(work, self._writing)

    def _tries(self, work: Callable[[Transaction], T], session: Callable[[], Any]) -> T:
        for attempt in range(1, MAX_TRIES + 1):
            try:
                with session() as transaction:
                    return work(transaction)
            except Disturbed as clash:
                if attempt == MAX_TRIES:
                    raise Unavailable(
                        f"the metabase is too busy: gave up after {attempt} tries ({clash})"
                    ) from clash
                time.sleep(random.uniform(0, min(0.001 * 2**attempt, 0.1)))
        raise AssertionError("unreachable")

    @contextmanager
    def _reading(self) -> Iterator[Transaction]:
        with self._connection(self._readers) as connection:
            if self.dialect == SQLITE:
                connection.execute("BEGIN")
            yield Transaction(connection, self.dialect, self.clock())
            connection.commit()

    @contextmanager
    def _looking(self) -> Iterator[Transaction]:
        with self._connection(self._readers) as connection:
            if self.dialect == SQLITE:
                yield Transaction(connection, self.dialect, self.clock())
                return
            # The driver would send BEGIN and COMMIT, each a trip that one SELECT does not need.
            connection.autocommit = True
            try:
                yield Transaction(connection, self.dialect, self.clock())
            finally:
                if not connection.closed:
                    connection.autocommit = False

    @contextmanager
    def _writing(self) -> Iterator[Transaction]:
        if self._writer is None:
            with self._connection(self.engine) as connection:
                yield Transaction(connection, self.dialect, self.clock())
                connection.commit()
        else:
            with self._writer, self._connection(self.engine) as connection:
                connection.execute("BEGIN IMMEDIATE")
                yield Transaction(connection, self.dialect, self.clock())
                connection.commit()

    @contextmanager
    def _connection(self, engine: Engine) -> Iterator[Any]:
        """A pooled driver connection; rolled back and mapped on the way out of an error."""
        try:
            pooled = engine.raw_connection()
        except DBAPIError as error:
            raise database_error(error.orig or error) from error
        except Exception as error:
            raise database_error(error) from error
        connection: Any = pooled.driver_connection
        try:
            yield connection
        except BaseException as error:
            _roll_back(connection)
            clash = disturbed(error)
            if clash is not None:
                raise clash from error
            foreign = database_error(error, only_foreign=True)
            if foreign is not None:
                raise foreign from error
            raise
        finally:
            pooled.close()


def _roll_back(connection: Any) -> None:
    try:
        connection.rollback()
    except Exception:
        # A connection that cannot roll back is broken; the server has dropped its work.
        connection.close()


def _postgres_engine(url: URL, *, read_only: bool) -> Engine:
    """A pool of connections for writing, or for reading one snapshot a transaction."""
    engine = create_engine(url, pool_size=POOL_SIZE, max_overflow=OVERFLOW)

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        from psycopg import IsolationLevel

        # Every statement is served by an index whatever its parameters, so each is planned
        # once a connection, and never for the few rows that a new table happens to have.
        connection.prepare_threshold = 0
        connection.execute("SET plan_cache_mode = force_generic_plan")
        connection.execute("SET enable_seqscan = off")
        connection.commit()
        if read_only:
            connection.isolation_level = IsolationLevel.REPEATABLE_READ
            connection.read_only = True

    return engine


def _engine(url: str) -> Engine:
    try:
        parsed = make_url(url)
        if parsed.drivername in ("postgresql", "postgres"):
            parsed = parsed.set(drivername="postgresql+psycopg")
        if parsed.get_backend_name() not in (SQLITE, POSTGRES):
            raise ConfigInvalid(f"a metabase cannot live in {parsed.get_backend_name()!r}")
        if parsed.get_backend_name() == SQLITE:
            return _sqlite_engine(str(parsed.database or ""))
        return _postgres_engine(parsed, read_only=False)
    except (ArgumentError, NoSuchModuleError) as error:
        raise ConfigInvalid("the metabase URL cannot be read") from error
    except ImportError as error:
        raise MissingExtra.of("postgres", "a metabase on PostgreSQL") from error


def _sqlite_engine(path: str) -> Engine:
    if path in ("", ":memory:"):
        raise ConfigInvalid("a metabase on SQLite needs a file", hint="Use sqlite:///path/to.db")
    # The connection last used is the one whose cache the last commit has not made stale.
    engine = create_engine(
        f"sqlite:///{path}",
        pool_size=POOL_SIZE,
        max_overflow=POOL_SIZE,
        pool_timeout=60,
        pool_use_lifo=True,
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # BEGIN is ours to say, never the driver's
        connection.execute(f"PRAGMA busy_timeout={BUSY_TIMEOUT_MS}")
        _switch_to_wal(connection)
        for pragma in (
            "synchronous=FULL",
            "temp_store=MEMORY",
            "cache_size=-16384",
            "mmap_size=268435456",
        ):
            connection.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # The driver begins nothing, so whoever uses the engine itself needs this.
        mode = connection.get_execution_options().get(BEGIN_MODE, "DEFERRED")
        connection.exec_driver_sql(f"BEGIN {mode}")

    return engine


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Two processes that open a new file at once: SQLite does not wait here by itself."""
    for _ in range(MAX_TRIES):
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if disturbed(error) is None:
                raise
            time.sleep(random.uniform(0.005, 0.05))
    connection.execute("PRAGMA journal_mode=WAL")
