"""A TCP proxy whose connections can be cut at any moment: for protocols that are not HTTP/1."""

from __future__ import annotations

import contextlib
import socket
import threading

HOST = "127.0.0.1"


class CuttingProxy:
    """Passes bytes between clients and ``upstream`` (``host:port``) until :meth:`cut`.

    Use it as a context manager; clients connect to ``address``. After a cut new connections are
    served as before. A connection that is silenced stays open and carries nothing: so it is when
    a machine loses its power.
    """

    def __init__(self, upstream: str) -> None:
        host, _, port = upstream.rpartition(":")
        self._upstream = (host, int(port))
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._silent: set[socket.socket] = set()
        self._listener = socket.create_server((HOST, 0))
        self.accepted = 0
        """Connections that clients have made."""

    @property
    def address(self) -> str:
        """Where clients connect, as ``host:port``."""
        return f"{HOST}:{self._listener.getsockname()[1]}"

    def cut(self) -> None:
        """Break every connection, in the middle of whatever it carries."""
        with self._lock:
            broken, self._open = self._open, set()
        for each in broken:
            _close(each)

    def silence(self) -> None:
        """Pass nothing on any more, in either direction, on the connections there are."""
        with self._lock:
            self._silent |= self._open

    def __enter__(self) -> CuttingProxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        _close(self._listener)
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                self.accepted += 1
                server = socket.create_connection(self._upstream)
            except OSError:
                return
            with self._lock:
                self._open |= {client, server}
            for pair in ((client, server), (server, client)):
                threading.Thread(target=self._pass, args=pair, daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if source not in self._silent:
                    target.sendall(data)
        for each in (source, target):
            with self._lock:
                self._open.discard(each)
            _close(each)


def _close(each: socket.socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits on it
    each.close()
