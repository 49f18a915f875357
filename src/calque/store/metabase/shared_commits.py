"""SQLite has one writer at a time and waits for the disk at each commit; so commits are shared.

Writers of one process line up. Whoever is first takes all who wait by then into one
transaction, each in a savepoint of its own, and commits once for all. Nobody is answered
before that commit is on the disk. To each of them it is as if they had come one after the
other: a work that fails takes back its own rows and no others, and sees what those before
it did. Works run in the order in which they came, in the thread of whoever is first.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Generic, TypeVar, cast

from calque.store.metabase.faults import Disturbed, meaning
from calque.store.metabase.statement import SQLITE
from calque.store.metabase.transaction import Transaction

T = TypeVar("T")

MAX_SHARED = 32
"""Works in one commit: enough to make the disk's part small, few enough not to wait long."""


class SharedCommits:
    """The line of writers of one database file; other processes queue in SQLite itself."""

    def __init__(
        self, connect: Callable[[], AbstractContextManager[Any]], clock: Callable[[], int]
    ) -> None:
        self._connect = connect
        self._clock = clock
        self._door = threading.Lock()
        self._waiting: deque[_Turn[Any]] = deque()
        self._led = False

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Run ``work`` and commit it; raises what it raised, or what the commit did."""
        turn = _Turn(work)
        if not self._is_first(turn):
            self._wait(turn)
        if not turn.over:
            self._lead(turn)
        return turn.outcome()

    def _is_first(self, turn: _Turn[Any]) -> bool:
        """Whether nobody leads, so that ``turn`` does now; otherwise it waits in the line."""
        with self._door:
            if self._led:
                self._waiting.append(turn)
                return False
            self._led = True
            return True

    def _wait(self, turn: _Turn[Any]) -> None:
        """Until a leader has brought ``turn`` to its end, or makes it lead."""
        try:
            turn.gate.acquire()
        except BaseException:  # interrupted: nobody is there any more to be answered or to lead
            with self._door:
                if turn in self._waiting:
                    self._waiting.remove(turn)
                    raise
            if turn.leads:
                self._hand_over()
            raise

    def _lead(self, own: _Turn[Any]) -> None:
        """Bring ``own`` to its end, and with it whoever waits; then let the next one lead."""
        turns = [own]
        try:
            with self._door:
                while self._waiting and len(turns) < MAX_SHARED:
                    turns.append(self._waiting.popleft())
            self._settle(turns)
        finally:
            self._hand_over()
            for turn in turns:
                if not turn.over:
                    turn.fail(Disturbed("the writer that led this commit was interrupted"))
                if turn is not own:
                    turn.gate.release()

    def _hand_over(self) -> None:
        with self._door:
            if not self._waiting:
                self._led = False
                return
            following = self._waiting.popleft()
            following.leads = True
        following.gate.release()

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
            connection.execute("BEGIN IMMEDIATE")
            for turn in turns:
                turn.error = None
                transaction = Transaction(connection, SQLITE, self._clock())
                if len(turns) == 1:
                    turn.result = turn.work(transaction)
                else:
                    _run_apart(connection, turn, transaction)
            connection.commit()
        for turn in turns:
            turn.over = True


class _Turn(Generic[T]):
    """One work in the line, and what became of it."""

    __slots__ = ("error", "gate", "leads", "over", "result", "work")

    def __init__(self, work: Callable[[Transaction], T]) -> None:
        self.work = work
        self.gate = threading.Lock()
        self.gate.acquire()
        self.leads = False
        self.over = False
        self.result: T | None = None
        self.error: Exception | None = None

    def fail(self, error: Exception) -> None:
        self.error = error
        self.over = True

    def outcome(self) -> T:
        if self.error is not None:
            raise self.error
        return cast(T, self.result)


def _run_apart(connection: Any, turn: _Turn[Any], transaction: Transaction) -> None:
    """Run a work so that its failure is its own."""
    connection.execute("SAVEPOINT turn")
    try:
        turn.result = turn.work(transaction)
    except Exception as error:
        if not connection.in_transaction:
            raise  # SQLite has rolled everything back
        connection.execute("ROLLBACK TO turn")
        turn.error = meaning(error)
    connection.execute("RELEASE turn")
