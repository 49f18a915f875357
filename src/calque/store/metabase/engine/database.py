"""Connections and transactions: the only place that executes SQL.

Promises:

- every transaction, reading ones too, runs on a connection of its own from the pool, and
  all its statements on that one connection; on SQLite writers that wait for each other
  share a transaction, each in a savepoint (``group_commit.py``);
- a reading transaction sees one snapshot; a writing one on SQLite holds the write lock
  from its first statement, on PostgreSQL it locks rows in the order of ``locks.py``;
- a committed transaction is on the disk (``synchronous=FULL``, ``synchronous_commit``);
- what two transactions did to each other (busy, deadlock, serialization, a row inserted
  twice) is retried a bounded number of times, as is a connection that broke before its
  commit; nothing of the failed try remains.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import PoolProxiedConnection, inspect
from sqlalchemy.exc import DBAPIError

from calque.databases.errors import is_cut, is_forbidden, is_lock_timeout
from calque.errors import FailedPrecondition, ResourceExhausted, Unavailable
from calque.store.metabase.engine.callers import caller_check, require_caller, require_caller_around
from calque.store.metabase.engine.connections import Connections
from calque.store.metabase.engine.errors import Disturbed, database_error, meaning_of
from calque.store.metabase.engine.group_commit import PAUSE_SECONDS, SharedCommits
from calque.store.metabase.engine.libpq import execute_prepared, renew_plans, roll_back
from calque.store.metabase.engine.pools import (
    Engines,
    make_file,
    open_engines,
    sqlite_file,
)
from calque.store.metabase.engine.procedure import Procedure
from calque.store.metabase.engine.reserve import Reserve
from calque.store.metabase.engine.statement import POSTGRES, SQLITE, Statement
from calque.store.metabase.engine.table_reserve import TableReserve
from calque.store.metabase.engine.transaction import Parameters, Transaction
from calque.store.metabase.model.records import now_us
from calque.store.metabase.model.schema import projects
from calque.values import Backoff

T = TypeVar("T")

MAX_TRIES = 12
_BACKOFF = Backoff(first=0.002, most=0.1, jitter=1.0)
BEGIN_READING = {
    SQLITE: "BEGIN",
    POSTGRES: "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
}


class Database:
    """A metabase's database: pools of connections and the rules above.

    ``engine`` is for migrations and whoever wants SQLAlchemy's sessions.
    """

    def __init__(self, engines: Engines, *, clock: Callable[[], int] = now_us) -> None:
        self.engine = engines.sessions
        self.dialect = engines.sessions.dialect.name
        self.clock = clock
        self._driven = engines.driven
        self._connections = Connections(engines.driven, engines.most)
        self._has_calls = self.dialect == POSTGRES
        self._shared = SharedCommits(self._connection, clock) if self.dialect == SQLITE else None
        self._reserve: Reserve | TableReserve = (
            Reserve(Path(engines.sessions.url.database or ""))
            if self.dialect == SQLITE
            else TableReserve(self._connection)
        )

    @classmethod
    def open(cls, url: str, *, clock: Callable[[], int] = now_us, create: bool = True) -> Database:
        """Connect to ``sqlite:///path`` or ``postgresql://…``; does not migrate.

        Without ``create`` a file that is missing, or a database without a metabase, is refused.
        """
        file = sqlite_file(url)
        if file is not None and not create and not file.exists():
            raise missing_database(f"{file} is not there")
        if file is not None:
            make_file(file)
            Reserve(file).make_room_to_open()
        database = cls(open_engines(url), clock=clock)
        if not create:
            database._require_tables()
        return database

    def _require_tables(self) -> None:
        try:
            if inspect(self.engine).has_table(projects.name):
                return
        except DBAPIError as error:
            self.close()
            raise database_error(error.orig or error) from error
        self.close()
        raise missing_database("it is empty")

    def close(self) -> None:
        """Close every connection that nobody uses."""
        self._connections.close()
        self.engine.dispose()
        self._driven.dispose()

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Run ``work`` in one read-only snapshot."""
        return _retry(lambda: self._transact(work, BEGIN_READING[self.dialect]))

    def read_rows(self, statement: Statement, parameters: Parameters) -> list[Any]:
        """The rows of one reading statement: a snapshot by itself, in a single trip."""
        return _retry(lambda: self._read_rows_once(statement, parameters))

    def call(self, procedure: Procedure, parameters: Parameters) -> Any | None:
        """The row that ``procedure`` gives, its transaction committed, all in a single trip.

        Only PostgreSQL can, and only where the user may make temporary things: else ``None``. So it
        is where a lock is held for longer than a procedure waits.
        A connection that breaks has it run again, so it must see what it did before.
        """
        if not self._has_calls:
            return None
        try:
            return _retry(lambda: self._call_once(procedure, parameters))
        except _LockHeld:
            return None

    def write(self, work: Callable[[Transaction], T], *, makes_room: bool = False) -> T:
        """Run ``work`` and commit; on any error nothing of it remains.

        ``work`` may run several times, and in the thread of another writer, so it must not
        have effects of its own. Nothing is begun or committed for a caller that is gone. Work
        that ``makes_room`` (a delete) may use what is kept free for it on a full disk.
        """
        require = caller_check()
        work = require_caller_around(work)
        shared = self._shared

        def write() -> T:
            if shared is not None:
                return shared.write(work, require)
            return self._transact(work, "BEGIN")

        self._reserve.keep_now_and_then()
        try:
            return _retry(write)
        except ResourceExhausted:
            if not makes_room:
                raise
        self._reserve.give_up()
        if shared is not None:
            self._write_log_back()
        try:
            return _retry(write)
        finally:
            # At once, before others take the room: the next delete needs it as much.
            self._reserve.keep()

    def let_others_write(self) -> None:
        """Between two batches: other processes that wait for the lock of SQLite come in now."""
        if self._shared is not None:
            time.sleep(PAUSE_SECONDS)

    def _write_log_back(self) -> None:
        """Empty SQLite's log into the file; where that cannot be, the work itself will say so."""
        with suppress(ResourceExhausted, Disturbed), self._connection() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _transact(self, work: Callable[[Transaction], T], opening: str) -> T:
        with self._connection() as connection:
            result = work(Transaction(connection, self.dialect, self.clock(), opening))
            _commit(connection)
            return result

    def _read_rows_once(self, statement: Statement, parameters: Parameters) -> list[Any]:
        with self._connection() as connection:
            if self.dialect == POSTGRES:
                return execute_prepared(connection, *statement.for_postgres(parameters))
            found: list[Any] = connection.execute(statement.sql(SQLITE), parameters).fetchall()
            return found

    def _call_once(self, procedure: Procedure, parameters: Parameters) -> Any | None:
        with self._connection() as connection:
            require_caller()
            try:
                return procedure.call(connection, parameters)
            except Exception as error:
                if is_lock_timeout(error):
                    raise _LockHeld from error
                if not is_forbidden(error):
                    raise
        # The user will not be allowed next time either: every later call goes the long way.
        self._has_calls = False
        return None

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        """A driver connection of one's own; rolled back and mapped on the way out of an error."""
        pooled = self._connections.take()
        connection: Any = pooled.driver_connection
        try:
            if self.dialect == POSTGRES:
                renew_plans(connection)
            yield connection
        except Exception as error:
            lost = self._give_up(pooled, error)
            found = meaning_of(error)
            if found is error:
                raise
            raise (Disturbed("the connection broke") if lost else found) from error
        except BaseException as error:
            self._give_up(pooled, error)
            raise
        self._connections.give_back(pooled)

    def _give_up(self, pooled: PoolProxiedConnection, error: BaseException) -> bool:
        """Roll back and part with the connection; whether it is lost, and not just the work."""
        connection: Any = pooled.driver_connection
        lost = is_cut(error, connection)
        if not lost:
            try:
                connection.rollback() if self.dialect == SQLITE else roll_back(connection)
            except Exception:
                lost = True
        if lost:
            self._connections.lose(pooled)
        else:
            self._connections.give_back(pooled)
        return lost


class _LockHeld(Exception):
    """Somebody else holds what a procedure needs, for long."""


def missing_database(why: str) -> FailedPrecondition:
    """A metabase that was there once and is not now: an empty one must not take its place."""
    return FailedPrecondition(
        f"the database of this store is missing: {why}",
        hint="Is its disk mounted? Put the file back, or restore a backup: `calque store restore`.",
    )


def _commit(connection: Any) -> None:
    try:
        connection.commit()
    except Exception as error:
        # The one moment when a broken connection is not tried again: the server may have
        # committed before it broke, and doing the work twice is for the caller to decide.
        if is_cut(error, connection):
            raise Unavailable(
                "the connection to the metabase broke during a commit: it may be done or not",
                hint="Look whether it is done, and do it again if not.",
            ) from error
        raise


def _retry(action: Callable[[], T]) -> T:
    for attempt in range(1, MAX_TRIES + 1):
        try:
            return action()
        except Disturbed as clash:
            if attempt == MAX_TRIES:
                raise Unavailable(
                    f"the metabase is too busy: gave up after {attempt} tries ({clash})"
                ) from clash
            _BACKOFF.sleep(attempt)
    raise AssertionError("unreachable")
