"""The thread that waits with every connection which has no whole request yet.

So ten thousand silent clients cost a thread, and those that send a head byte by byte no more.
"""

from __future__ import annotations

import contextlib
import logging
import selectors
import socket
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable

from calque.gateway.http import connection as http_connection
from calque.gateway.http.connection import Connection, Step
from calque.values import MIB

HEADS_TOGETHER = 32 * MIB
"""Bytes that all unfinished heads and greetings of TLS may have together: nobody knows yet who
sends them."""
_ACCEPT_AT_ONCE = 64
_PAUSE = 1.0
"""Seconds without new connections when the system has no room for one."""

_log = logging.getLogger(__name__)


class Watch(threading.Thread):
    """Accepts connections, collects heads, and hands over whoever has one."""

    def __init__(
        self,
        listening: socket.socket,
        tls: Callable[[], ssl.SSLContext] | None,
        serve: Callable[[Connection], None],
        look_round: Callable[[], None] = lambda: None,
    ) -> None:
        """``look_round`` is called every second."""
        super().__init__(name="calque-s3-server", daemon=True)
        listening.setblocking(False)
        self._listening = listening
        self._tls = tls
        self._serve = serve
        self._look_round = look_round
        self._returned: deque[Connection] = deque()
        self._woken, self._wake = socket.socketpair()
        self._woken.setblocking(False)
        self._wake.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._selector.register(listening, selectors.EVENT_READ)
        self._watched: dict[Connection, int] = {}
        """Whom it waits with, and how many bytes each takes."""
        self._held = 0
        self._looked_at = 0.0
        self._accept_from = 0.0
        self._stopping = False

    def give_back(self, connection: Connection) -> None:
        """Wait with it again: its request is answered."""
        self._returned.append(connection)
        self._ring()

    def stop(self) -> None:
        """Accept nobody any more, and close whoever is silent."""
        self._stopping = True
        self._ring()
        self.join()
        for connection in (*self._watched, *self._returned):
            connection.close()
        for each in (self._woken, self._wake):
            each.close()
        self._selector.close()

    def run(self) -> None:
        while not self._stopping:
            try:
                self._wait()
            except Exception:  # one connection must not end all others
                _log.exception("the watch over connections stumbled")
                time.sleep(_PAUSE / 10)

    def _wait(self) -> None:
        often = min(1.0, http_connection.HEAD_PATIENCE / 4)
        for key, _ in self._selector.select(often):
            if key.fileobj is self._listening:
                self._accept()
            elif key.fileobj is self._woken:
                with contextlib.suppress(BlockingIOError):
                    self._woken.recv(4096)
            else:
                self._advance(key.data)
        while self._returned:
            self._advance(self._returned.popleft())
        # Not at every turn: to look at ten thousand silent ones costs as much as a request does.
        if time.monotonic() - self._looked_at >= often:
            self._close_late()
            self._look_round()
            self._looked_at = time.monotonic()

    def _accept(self) -> None:
        for _ in range(_ACCEPT_AT_ONCE):
            try:
                line, _ = self._listening.accept()
            except BlockingIOError:
                return
            except ConnectionError:  # gone before it was taken
                continue
            except OSError as error:  # no room for another
                _log.warning("a connection could not be accepted: %s", error.strerror)
                self._make_room()
                return
            try:
                connection = Connection(line, self._tls() if self._tls else None)
            except OSError:  # gone already
                line.close()
                continue
            self._advance(connection)

    def _make_room(self) -> None:
        """Close those that were silent for longest: whoever holds connections and says nothing
        must not keep out all who would. Without any, those that are served make room."""
        most = min(len(self._watched) // 4 + 1, _ACCEPT_AT_ONCE)
        silent = sorted(self._watched, key=lambda each: each.due)[:most]
        for connection in silent:
            self._forget(connection)
            connection.close()
        if not silent:
            self._selector.unregister(self._listening)
            self._accept_from = time.monotonic() + _PAUSE

    def _advance(self, connection: Connection) -> None:
        step = connection.advance()
        if step is Step.READ or step is Step.WRITE:
            self._watch(connection, step)
            return
        self._forget(connection)
        if step is Step.READY and not self._stopping:
            self._serve(connection)
        else:
            connection.close()

    def _watch(self, connection: Connection, step: Step) -> None:
        wanted = selectors.EVENT_READ if step is Step.READ else selectors.EVENT_WRITE
        if connection not in self._watched:
            self._watched[connection] = 0
            self._selector.register(connection, wanted, connection)
        elif self._selector.get_key(connection).events != wanted:
            self._selector.modify(connection, wanted, connection)
        self._held += connection.size - self._watched[connection]
        self._watched[connection] = connection.size
        if self._held > HEADS_TOGETHER:
            self._close_largest()

    def _close_largest(self) -> None:
        """Close whoever has sent most of a head and not its end, or stopped within its greeting;
        of those that are alike whoever came first. A head of a usual length comes in one go, and is
        not among them; half the room is made, so that this is done seldom."""
        largest = deque(sorted(self._watched, key=self._watched.__getitem__, reverse=True))
        before = len(largest)
        while self._held > HEADS_TOGETHER // 2:
            connection = largest.popleft()
            self._forget(connection)
            connection.close()
        _log.warning("%d connections that said nothing whole were closed", before - len(largest))

    def _forget(self, connection: Connection) -> None:
        if connection in self._watched:
            self._held -= self._watched.pop(connection)
            self._selector.unregister(connection)

    def _close_late(self) -> None:
        now = time.monotonic()
        for connection in [each for each in self._watched if each.is_late(now)]:
            self._forget(connection)
            connection.close()
        if self._accept_from and now >= self._accept_from:
            self._accept_from = 0.0
            self._selector.register(self._listening, selectors.EVENT_READ)

    def _ring(self) -> None:
        with contextlib.suppress(BlockingIOError, OSError):
            self._wake.send(b"\0")
