"""The connections that a metabase drives: lent to one transaction at a time, and kept open.

The engine's own way of lending costs a tenth of a small copy, so what it opens stays here, and
the one last used goes out first: its caches are warm. Whoever comes when all are lent waits for
the next one that is given back.
"""

from __future__ import annotations

import threading
import time

from sqlalchemy import Engine, PoolProxiedConnection
from sqlalchemy.exc import DBAPIError

from calque.errors import Unavailable
from calque.store.metabase.faults import database_error

PATIENCE = 60.0
"""Seconds to wait for a connection when all are lent."""


class Connections:
    """At most ``most`` connections of ``engine``. Safe to share between threads."""

    def __init__(self, engine: Engine, most: int) -> None:
        self._engine = engine
        self._most = most
        self._idle: list[PoolProxiedConnection] = []
        self._room = threading.Condition()
        self._open = 0
        self._waiting = 0

    def take(self) -> PoolProxiedConnection:
        """A connection of one's own: to be given back, or lost."""
        try:
            return self._idle.pop()
        except IndexError:
            return self._waited_for() or self._opened()

    def give_back(self, pooled: PoolProxiedConnection) -> None:
        """For the next one, with no transaction open."""
        self._idle.append(pooled)
        if self._waiting:
            with self._room:
                self._room.notify()

    def lose(self, pooled: PoolProxiedConnection) -> None:
        """Part with a broken connection, and with the idle ones: a server that stops drops all."""
        pooled.invalidate()
        self._forget()
        while (idle := self._popped()) is not None:
            idle.invalidate()
            self._forget()

    def close(self) -> None:
        """Close every connection that nobody uses."""
        while (idle := self._popped()) is not None:
            idle.close()
            self._forget()

    def _waited_for(self) -> PoolProxiedConnection | None:
        """One that was given back; ``None`` when there is room to open another."""
        deadline = time.monotonic() + PATIENCE
        with self._room:
            # Whoever gives back looks at this after it: one of us sees the other.
            self._waiting += 1
            try:
                while (idle := self._popped()) is None:
                    if self._open < self._most:
                        self._open += 1
                        return None
                    if not self._room.wait(deadline - time.monotonic()):
                        raise Unavailable(
                            f"all {self._most} connections to the metabase were busy for "
                            f"{PATIENCE:.0f} seconds"
                        )
                return idle
            finally:
                self._waiting -= 1

    def _opened(self) -> PoolProxiedConnection:
        try:
            return self._engine.raw_connection()
        except BaseException as error:
            self._forget()
            if not isinstance(error, Exception):
                raise
            known = error.orig if isinstance(error, DBAPIError) else None
            raise database_error(known or error) from error

    def _popped(self) -> PoolProxiedConnection | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _forget(self) -> None:
        with self._room:
            self._open -= 1
            self._room.notify()
