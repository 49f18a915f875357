"""Connections and transactions: the only place that executes SQL.

Promises:

- every transaction, reading ones too, runs on a connection of its own from the pool, and
  all its statements on that one connection; on SQLite writers that wait for each other
  share a transaction, each in a savepoint (``shared_commits.py``);
- a reading transaction sees one snapshot; a writing one on SQLite holds the write lock
  from its first statement, on PostgreSQL it locks rows in the order of ``locks.py``;
- a committed transaction is on the disk (``synchronous=FULL``, ``synchronous_commit``);
- what two transactions did to each other (busy, deadlock, serialization, a row inserted
  twice) is retried a bounded number of times; nothing of the failed try remains.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlalchemy import PoolProxiedConnection
from sqlalchemy.exc import DBAPIError

from calque.errors import Unavailable
from calque.store.metabase.engines import Engines, open_engines
from calque.store.metabase.faults import Disturbed, database_error, meaning
from calque.store.metabase.shared_commits import SharedCommits
from calque.store.metabase.statement import POSTGRES, SQLITE, Statement
from calque.store.metabase.transaction import Parameters, Transaction
from calque.store.metabase.values import now_us

T = TypeVar("T")

MAX_TRIES = 12
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
        self._idle: list[PoolProxiedConnection] = []
        self._shared = SharedCommits(self._connection, clock) if self.dialect == SQLITE else None

    @classmethod
    def open(cls, url: str, *, clock: Callable[[], int] = now_us) -> Database:
        """Connect to ``sqlite:///path`` or ``postgresql://…``; does not migrate."""
        return cls(open_engines(url), clock=clock)

    def close(self) -> None:
        """Close every connection that nobody uses."""
        while self._idle:
            self._idle.pop().close()
        self.engine.dispose()
        self._driven.dispose()

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Run ``work`` in one read-only snapshot."""
        return _tries(lambda: self._transact(work, BEGIN_READING[self.dialect]))

    def look(self, statement: Statement, parameters: Parameters) -> list[Any]:
        """The rows of one reading statement: a snapshot by itself, in a single trip."""
        return _tries(lambda: self._alone(lambda alone: alone.rows(statement, parameters)))

    def at_once(self, work: Sequence[tuple[Statement, Parameters]]) -> list[list[Any]]:
        """Execute in order as one transaction and commit it, all in a single trip.

        Only PostgreSQL can: statements sent together, without a BEGIN, are a transaction,
        on disk or gone as a whole. Gives the rows of each.
        """
        return _tries(lambda: self._alone(lambda alone: alone.batch(work)))

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Run ``work`` and commit; on any error nothing of it remains.

        ``work`` may run several times, and in the thread of another writer, so it must not
        have effects of its own.
        """
        if self._shared is not None:
            shared = self._shared
            return _tries(lambda: shared.write(work))
        return _tries(lambda: self._transact(work, "BEGIN"))

    def _transact(self, work: Callable[[Transaction], T], opening: str) -> T:
        with self._connection() as connection:
            result = work(Transaction(connection, self.dialect, self.clock(), opening))
            connection.commit()
            return result

    def _alone(self, work: Callable[[Transaction], T]) -> T:
        """No BEGIN and no COMMIT, each a trip that one statement or batch does not need."""
        with self._connection() as connection:
            return work(Transaction(connection, self.dialect, self.clock()))

    @contextmanager
    def _connection(self) -> Iterator[Any]:
        """A driver connection of one's own; rolled back and mapped on the way out of an error."""
        pooled = self._taken()
        connection: Any = pooled.driver_connection
        try:
            yield connection
        except Exception as error:
            self._give_up(pooled)
            found = meaning(error)
            if found is error:
                raise
            raise found from error
        except BaseException:
            self._give_up(pooled)
            raise
        self._idle.append(pooled)

    def _taken(self) -> PoolProxiedConnection:
        """The connection last used, if it is free: its caches are warm. Else one of the pool.

        The pool's own way of lending costs a tenth of a small copy, so connections that went
        well do not go back to it before the end.
        """
        try:
            return self._idle.pop()
        except IndexError:
            pass
        try:
            return self._driven.raw_connection()
        except DBAPIError as error:
            raise database_error(error.orig or error) from error
        except Exception as error:
            raise database_error(error) from error

    def _give_up(self, pooled: PoolProxiedConnection) -> None:
        _roll_back(pooled.driver_connection)
        pooled.close()


def _tries(action: Callable[[], T]) -> T:
    for attempt in range(1, MAX_TRIES + 1):
        try:
            return action()
        except Disturbed as clash:
            if attempt == MAX_TRIES:
                raise Unavailable(
                    f"the metabase is too busy: gave up after {attempt} tries ({clash})"
                ) from clash
            time.sleep(random.uniform(0, min(0.001 * 2**attempt, 0.1)))
    raise AssertionError("unreachable")


def _roll_back(connection: Any) -> None:
    try:
        connection.rollback()
    except Exception:
        # A connection that cannot roll back is broken; the server has dropped its work.
        connection.close()
