"""The connections that a metabase drives: lent to one transaction at a time, and kept open.

The engine's own way of lending costs a tenth of a small copy, so what it opens stays here, and
the one last used goes out first: its caches are warm. Whoever comes when all are lent waits in a
line, and what is given back goes to the first in it: a thread that gives back and takes again at
once would otherwise always be quicker than those who wait.
"""

from __future__ import annotations

import threading
from collections import deque

from sqlalchemy import Engine, PoolProxiedConnection
from sqlalchemy.exc import DBAPIError

from calque.errors import Unavailable
from calque.store.metabase.engine.errors import database_error

PATIENCE = 60.0
"""Seconds to wait for a connection when all are lent."""


class Connections:
    """At most ``most`` connections of ``engine``. Safe to share between threads."""

    def __init__(self, engine: Engine, most: int) -> None:
        self._engine = engine
        self._most = most
        self._idle: list[PoolProxiedConnection] = []
        self._door = threading.Lock()
        self._line: deque[_Place] = deque()
        self._open = 0

    def take(self) -> PoolProxiedConnection:
        """A connection of one's own: to be given back, or lost."""
        try:
            return self._idle.pop()
        except IndexError:
            return self._waited_for() or self._opened()

    def give_back(self, pooled: PoolProxiedConnection) -> None:
        """For the next one, with no transaction open."""
        self._idle.append(pooled)
        # Whoever lines up looks at the idle ones after it: one of us sees the other.
        if self._line:
            self._serve()

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
        place = _Place()
        try:
            self._line.append(place)
            self._serve()
            if place.gate.acquire(timeout=PATIENCE):
                return place.lent
        except BaseException:
            if not self._left(place):
                self._refuse(place)
            raise
        if not self._left(place):  # served at the last moment
            return place.lent
        raise Unavailable(
            f"all {self._most} connections to the metabase were busy for {PATIENCE:.0f} seconds"
        )

    def _serve(self) -> None:
        """Give what there is to those who wait, in the order in which they came."""
        with self._door:
            while self._line:
                idle = self._popped()
                if idle is None:
                    if self._open >= self._most:
                        return
                    self._open += 1
                place = self._line.popleft()
                place.lent = idle
                place.gate.release()

    def _left(self, place: _Place) -> bool:
        """Take ``place`` out of the line; False when it was served already."""
        with self._door:
            if place not in self._line:
                return False
            self._line.remove(place)
            return True

    def _refuse(self, place: _Place) -> None:
        """Pass on what was given to somebody who has gone."""
        if place.lent is None:
            self._forget()
        else:
            self.give_back(place.lent)

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
        with self._door:
            self._open -= 1
        self._serve()


class _Place:
    """One place in the line: ``lent`` is what it got, ``None`` for leave to open one."""

    __slots__ = ("gate", "lent")

    def __init__(self) -> None:
        self.gate = threading.Lock()
        self.gate.acquire()
        self.lent: PoolProxiedConnection | None = None
