"""The connections that a metabase drives: lent to one transaction at a time, and kept open.

The engine's own way of lending costs a tenth of a small copy, so what it opens stays here, and
the one last used goes out first: its caches are warm. Whoever comes when all are lent waits in a
queue, and what is given back goes to the first in it: a thread that gives back and takes again at
once would otherwise always be quicker than those who wait.
"""

from __future__ import annotations

import threading
from collections import deque

from sqlalchemy import Engine, PoolProxiedConnection
from sqlalchemy.exc import DBAPIError

from calque.errors import Unavailable
from calque.store.metabase.engine.errors import database_error

MAX_WAIT_SECONDS = 60.0
"""When all are lent for so long, something hangs, and an error tells more than a longer wait."""


class Connections:
    """At most ``most`` connections of ``engine``. Safe to share between threads."""

    def __init__(self, engine: Engine, most: int) -> None:
        self._engine = engine
        self._most = most
        self._idle: list[PoolProxiedConnection] = []
        self._lock = threading.Lock()
        self._queue: deque[_Waiter] = deque()
        self._open = 0

    def take(self) -> PoolProxiedConnection:
        """A connection of one's own: to be given back, or lost."""
        # A list's pop is one step for Python's threads: no lock, and no two get the same one.
        try:
            return self._idle.pop()
        except IndexError:
            return self._wait_for_one() or self._open_another()

    def give_back(self, pooled: PoolProxiedConnection) -> None:
        """For the next one, with no transaction open."""
        # No lock is taken on the usual way, so a thread may begin to wait at this very moment. It
        # joins the queue first and then looks for an idle connection; we do it the other way
        # round: add the idle one first and then look at the queue. So either it finds the
        # connection or we find it waiting, and nobody sleeps beside a free connection.
        self._idle.append(pooled)
        if self._queue:
            self._serve()

    def lose(self, pooled: PoolProxiedConnection) -> None:
        """Part with a broken connection, and with the idle ones: a server that stops drops all."""
        pooled.invalidate()
        self._forget()
        while (idle := self._pop_idle()) is not None:
            idle.invalidate()
            self._forget()

    def close(self) -> None:
        """Close every connection that nobody uses."""
        while (idle := self._pop_idle()) is not None:
            idle.close()
            self._forget()

    def _wait_for_one(self) -> PoolProxiedConnection | None:
        """One that was given back; ``None`` when there is room to open another."""
        waiter = _Waiter()
        try:
            self._queue.append(waiter)
            self._serve()
            if waiter.ready.acquire(timeout=MAX_WAIT_SECONDS):
                return waiter.lent
        except BaseException:  # Ctrl-C: what was handed over just now must not be lost
            if not self._leave_queue(waiter):
                self._refuse(waiter)
            raise
        # Between the end of the wait and this line we may have been served after all.
        if not self._leave_queue(waiter):
            return waiter.lent
        raise Unavailable(
            f"all {self._most} connections to the metabase "
            f"were busy for {MAX_WAIT_SECONDS:.0f} seconds"
        )

    def _serve(self) -> None:
        """Give what there is to those who wait, in the order in which they came."""
        with self._lock:
            while self._queue:
                idle = self._pop_idle()
                if idle is None:
                    if self._open >= self._most:
                        return
                    # Counted before it is open, or several threads would open the last one.
                    self._open += 1
                waiter = self._queue.popleft()
                waiter.lent = idle
                waiter.ready.release()

    def _leave_queue(self, waiter: _Waiter) -> bool:
        """Take ``waiter`` out of the queue; False when it was served already."""
        with self._lock:
            if waiter not in self._queue:
                return False
            self._queue.remove(waiter)
            return True

    def _refuse(self, waiter: _Waiter) -> None:
        """Pass on what was given to somebody who has gone."""
        if waiter.lent is None:
            self._forget()
        else:
            self.give_back(waiter.lent)

    def _open_another(self) -> PoolProxiedConnection:
        try:
            return self._engine.raw_connection()
        except BaseException as error:
            self._forget()
            if not isinstance(error, Exception):
                raise
            known = error.orig if isinstance(error, DBAPIError) else None
            raise database_error(known or error) from error

    def _pop_idle(self) -> PoolProxiedConnection | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _forget(self) -> None:
        with self._lock:
            self._open -= 1
        self._serve()


class _Waiter:
    """A thread in the queue: ``lent`` is what it got, ``None`` for leave to open one."""

    __slots__ = ("lent", "ready")

    def __init__(self) -> None:
        self.ready = threading.Lock()
        self.ready.acquire()
        self.lent: PoolProxiedConnection | None = None
