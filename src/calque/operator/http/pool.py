"""A bounded set of connections to one host, shared by threads."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from calque.operator.http.connection import Connection, Reply, WireError
from calque.operator.http.route import Route
from calque.operator.http.waiting_time import SLICE, CalledOffError, Patience

_IDLE_SECONDS = 20.0
"""Servers close idle connections after 30 s or less; older ones than this are not tried."""


class Pool:
    """Hands out connections, newest first, never more than ``most`` at a time."""

    def __init__(self, route: Route, most: int, *, patience: float) -> None:
        self.route = route
        self._patience = patience
        self._most = most
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._free = threading.BoundedSemaphore(self._most)
        self._lock = threading.Lock()
        self._idle: list[tuple[float, Connection]] = []

    def exchange(
        self,
        head: bytes,
        body: bytes | memoryview,
        *,
        bodiless: bool,
        timeout: float,
        repeatable: bool,
        within: float | None = None,
        stopped: Callable[[], bool] | None = None,
    ) -> tuple[Connection, Reply]:
        """Send a request over a connection that the caller gives back with :meth:`release`.

        A kept connection may have been closed by the server a moment ago. If it breaks before any
        of a reply came, the request goes out once more on a new one, where repeating does no harm.
        ``timeout`` bounds each silence, ``within`` the whole, its body included; ``stopped`` calls
        it off.
        """
        if self._pid != os.getpid():
            # A forked child must not speak on its parent's connections, nor wait for them.
            self._begin()
        patience = Patience.of(timeout, within, stopped)
        most = self._patience if within is None else min(self._patience, within)
        # A bound on waiting for a place too: it counts against the time of the whole request.
        if not self._take_place(most, stopped):
            raise WireError(
                f"all {self._most} connections were busy for {most:.0f} s",
                sent=False,
                answered=False,
                timed_out=True,
            )
        try:
            kept = self._take_idle()
            if kept is not None:
                try:
                    return kept, kept.exchange(head, body, bodiless=bodiless, patience=patience)
                except WireError as error:
                    kept.close()
                    over = error.answered or error.timed_out or error.stopped
                    if over or not (repeatable or not error.sent):
                        raise
            fresh = self._connect(within, stopped)
            try:
                return fresh, fresh.exchange(head, body, bodiless=bodiless, patience=patience)
            except WireError:
                fresh.close()
                raise
        # Ctrl-C included: a place that is not given back is lost for the life of the pool.
        except BaseException:
            self._free.release()
            raise

    def _take_place(self, most: float, stopped: Callable[[], bool] | None) -> bool:
        end = time.monotonic() + most
        while (left := end - time.monotonic()) > 0:
            if self._free.acquire(timeout=min(left, SLICE)):
                return True
            if stopped is not None and stopped():
                raise WireError("it was stopped", sent=False, answered=False, stopped=True)
        return False

    def _take_idle(self) -> Connection | None:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                since, connection = self._idle.pop()
            # The newest first, so that in quiet times the others grow old and are closed.
            if time.monotonic() - since < _IDLE_SECONDS and not connection.stale():
                return connection
            connection.close()

    def _connect(self, within: float | None, stopped: Callable[[], bool] | None) -> Connection:
        patience = Patience.of(self.route.connect_timeout, within, stopped)
        try:
            return Connection(self.route.open(patience))
        # A name that cannot be a host's is no OSError but one of its encoding.
        except (OSError, ValueError) as error:
            raise WireError(
                str(error) or type(error).__name__,
                sent=False,
                answered=False,
                stopped=isinstance(error, CalledOffError),
            ) from error

    def release(self, connection: Connection) -> None:
        """Take a connection back; one whose reply was not read to its end is closed."""
        try:
            if connection.reusable:
                with self._lock:
                    self._idle.append((time.monotonic(), connection))
            else:
                connection.close()
        finally:
            self._free.release()

    def close(self) -> None:
        """Close what is idle; connections in use are closed when they come back unread."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()
