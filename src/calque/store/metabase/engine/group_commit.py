"""SQLite has one writer at a time and waits for the disk at each commit; so commits are shared.

Writers of one process queue. Whoever is first leads: it takes all who wait by then into one
transaction, each in a savepoint of its own, and commits once for all. Nobody is answered
before that commit is on the disk. To each of them it is as if they had come one after the
other: a work that fails takes back its own rows and no others, and sees what those before
it did. Works run in the order in which they came, in the thread of whoever is first.

Ctrl-C may strike a thread at any call, also between two steps of joining the queue or leaving it.
So there is no state but the queue itself, its head leads, and leaving may be done twice.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from itertools import islice
from typing import Any, Generic, TypeVar, cast

from calque.store.metabase.engine.errors import Disturbed, meaning_of
from calque.store.metabase.engine.statement import SQLITE
from calque.store.metabase.engine.transaction import Transaction

T = TypeVar("T")

POLL_SECONDS = 0.001
"""Between two tries for the write lock of another process."""
PAUSE_SECONDS = 0.002
"""What whoever writes batch after batch leaves to other processes: time for a try or two."""
MAX_SHARED = 32
"""Works in one commit: enough to make the disk's part small, few enough not to wait long."""


class SharedCommits:
    """The queue of writers of one database file; other processes queue in SQLite itself."""

    def __init__(
        self, connect: Callable[[], AbstractContextManager[Any]], clock: Callable[[], int]
    ) -> None:
        self._connect = connect
        self._clock = clock
        self._lock = threading.Lock()
        self._queue: deque[_Turn[Any]] = deque()

    def write(self, work: Callable[[Transaction], T], require: Callable[[], None]) -> T:
        """Run ``work`` and commit it; raises what it raised, or what the commit did.

        ``require`` is asked right before the commit, which may come long after the work: it
        raises where nobody wants it any more.
        """
        turn = _Turn(work, require)
        try:
            try:
                if not self._is_first(turn):
                    turn.ready.acquire()
                # Woken either because a leader took it along, or because it leads now.
                if not turn.over:
                    self._lead(turn)
            finally:
                self._leave(turn)
        finally:
            self._leave(turn)  # once more, for whoever was interrupted within the first
        return turn.outcome()

    def _is_first(self, turn: _Turn[Any]) -> bool:
        """Join the queue; whether nobody is before ``turn``, so that it leads."""
        with self._lock:
            self._queue.append(turn)
            return self._queue[0] is turn

    def _lead(self, own: _Turn[Any]) -> None:
        """Bring ``own`` to its end, and with it whoever waits."""
        # They stay in the queue until all is over: so nobody else leads meanwhile, and whoever
        # joins while the disk writes waits for the next commit.
        with self._lock:
            own.along = list(islice(self._queue, MAX_SHARED))
        self._settle(own.along)

    def _leave(self, turn: _Turn[Any]) -> None:
        """Out of the queue, with all whom ``turn`` took along; the next one leads."""
        if turn.over and not turn.along:
            return
        with self._lock:
            for each in (*turn.along, turn):
                if not each.over:
                    each.fail(Disturbed("the writer that led this commit was interrupted"))
                if each in self._queue:
                    self._queue.remove(each)
                each.wake()
            if self._queue:
                self._queue[0].wake()
            turn.along = []

    def _settle(self, turns: list[_Turn[Any]]) -> None:
        try:
            self._commit(turns)
        except Disturbed as clash:
            for turn in turns:
                turn.fail(Disturbed(str(clash)))
        except Exception as error:
            if len(turns) == 1:
                turns[0].fail(error)
                return
            # A full disk, say: let each find out whether it is the one that does not fit.
            for turn in turns:
                self._settle([turn])

    def _commit(self, turns: list[_Turn[Any]]) -> None:
        """One transaction with all of ``turns``; if it raises, nothing of them remains."""
        with self._connect() as connection:
            _begin(connection)
            for turn in turns:
                turn.error = None
                transaction = Transaction(connection, SQLITE, self._clock())
                if len(turns) == 1:
                    turn.result = turn.work(transaction)
                else:
                    _run_apart(connection, turn, transaction)
            for turn in turns:
                # Who is gone is taken out by running all of them again, each by itself.
                if turn.error is None:
                    turn.require()
            try:
                connection.commit()
                _end(turns)
            except Exception:
                raise
            except BaseException:  # Ctrl-C while the disk wrote is seen when it has written
                if not connection.in_transaction:
                    _end(turns)
                raise


class _Turn(Generic[T]):
    """One work in the queue, and what became of it."""

    __slots__ = ("along", "error", "over", "ready", "require", "result", "work")

    def __init__(self, work: Callable[[Transaction], T], require: Callable[[], None]) -> None:
        self.work = work
        self.require = require
        self.ready = threading.Lock()
        self.ready.acquire()
        self.along: list[_Turn[Any]] = []
        """Whom it leads, itself among them."""
        self.over = False
        self.result: T | None = None
        self.error: Exception | None = None

    def wake(self) -> None:
        """Let its thread go on: it is over, or leads."""
        if self.ready.locked():
            self.ready.release()

    def fail(self, error: Exception) -> None:
        self.error = error
        self.over = True

    def outcome(self) -> T:
        if self.error is not None:
            raise self.error
        return cast(T, self.result)


def _begin(connection: Any) -> None:
    """Begin with the write lock, and wait for it while another process has it.

    At once, since a transaction that has read first and wants the lock then is refused where
    another process wrote in between. SQLite's own wait sleeps up to 100 ms between two tries,
    and a process that writes without a pause would be back by then each time: so we try often.
    """
    (patience_ms,) = connection.execute("PRAGMA busy_timeout").fetchone()
    give_up_at = time.monotonic() + patience_ms / 1000
    connection.execute("PRAGMA busy_timeout=0")
    try:
        while True:
            try:
                connection.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as error:
                busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not busy or time.monotonic() >= give_up_at:
                    raise
            time.sleep(POLL_SECONDS)
    finally:
        connection.execute(f"PRAGMA busy_timeout={patience_ms}")


def _end(turns: list[_Turn[Any]]) -> None:
    for turn in turns:
        turn.over = True


def _run_apart(connection: Any, turn: _Turn[Any], transaction: Transaction) -> None:
    """Run a work so that its failure is its own."""
    connection.execute("SAVEPOINT turn")
    try:
        turn.result = turn.work(transaction)
    except Exception as error:
        if not connection.in_transaction:
            raise  # SQLite has rolled everything back
        connection.execute("ROLLBACK TO turn")
        turn.error = meaning_of(error)
    connection.execute("RELEASE turn")
