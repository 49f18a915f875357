"""HTTP/1.1 over one kept-alive connection, no more than S3 needs and little CPU.

``http.client`` opens the connection (TLS, proxies); requests and replies are written and read here,
because its reply parser alone costs as much as the rest of a request.
"""

from __future__ import annotations

import base64
import http.client
import select
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO, cast
from urllib.parse import unquote, urlsplit

_LONGEST_LINE = 65536
_MOST_HEADERS = 256
_BUFFER = 65536
_SMALL_BODY = 65536
"""Bodies up to this travel in one segment with their head."""


class WireError(Exception):
    """The exchange failed. ``answered``: some of a reply came; ``sent``: the request left us."""

    def __init__(self, why: str, *, sent: bool, answered: bool, timed_out: bool = False) -> None:
        super().__init__(why)
        self.sent = sent
        self.answered = answered
        self.timed_out = timed_out


@dataclass(frozen=True, slots=True)
class Route:
    """How to reach a host: its own address or a proxy's, and the context for TLS."""

    scheme: str
    host: str
    connect_timeout: float
    tls: ssl.SSLContext | None = None
    proxy: str | None = None

    @property
    def absolute(self) -> str:
        """What stands before the path in the request line: the origin, for a plain proxy."""
        return f"http://{self.host}" if self.proxy and self.scheme == "http" else ""

    def open(self) -> socket.socket:
        """A connected socket; OSError where the other side cannot be reached."""
        opened = self._opened()
        opened.connect()
        sock = opened.sock
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def _opened(self) -> http.client.HTTPConnection:
        parts = urlsplit(f"{self.scheme}://{self.host}")
        via = urlsplit(self.proxy) if self.proxy else parts
        name, port = via.hostname or "", via.port
        if self.scheme != "https":
            return http.client.HTTPConnection(name, port or 80, timeout=self.connect_timeout)
        default = 80 if self.proxy else 443
        secure = http.client.HTTPSConnection(
            name, port or default, timeout=self.connect_timeout, context=self.tls
        )
        if self.proxy:
            secure.set_tunnel(parts.hostname or "", parts.port or 443, _proxy_proof(self.proxy))
        return secure

    @property
    def proof(self) -> dict[str, str]:
        """Headers that a plain proxy wants on each request."""
        return _proxy_proof(self.proxy) if self.proxy and self.scheme == "http" else {}


def _proxy_proof(proxy: str) -> dict[str, str]:
    parts = urlsplit(proxy)
    if parts.username is None:
        return {}
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {"Proxy-Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}


class Connection:
    """One socket, one exchange at a time."""

    __slots__ = ("_reader", "_sock", "reusable", "used")

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._reader = cast(BinaryIO, sock.makefile("rb", _BUFFER))
        self.used = False
        self.reusable = True

    def stale(self) -> bool:
        """Whether an idle connection has bytes waiting: it was closed, or speaks out of turn."""
        if isinstance(self._sock, ssl.SSLSocket) and self._sock.pending():
            return True
        return bool(select.select([self._sock], [], [], 0)[0])

    def exchange(
        self, head: bytes, body: bytes | memoryview, *, bodiless: bool, timeout: float
    ) -> Reply:
        """Send a request and read the head of its reply; ``bodiless`` for HEAD."""
        sent = False
        self.reusable = False
        try:
            self._sock.settimeout(timeout)
            broken = self._send(head, body)
            sent = True
            status, headers = self._head(broken)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise WireError(
                str(error) or type(error).__name__,
                sent=sent,
                answered=isinstance(error, ValueError),
                timed_out=isinstance(error, TimeoutError),
            ) from error
        finally:
            self.used = True
        closing = headers.get("connection", "").lower() == "close" or broken is not None
        empty = bodiless or status in (204, 304)
        return Reply(self, self._reader, status, headers, empty=empty, closing=closing)

    def _send(self, head: bytes, body: bytes | memoryview) -> OSError | None:
        """Send everything; a server may refuse and hang up before it has read it all."""
        try:
            if len(body) <= _SMALL_BODY:
                self._sock.sendall(head + body)
            else:
                self._sock.sendall(head)
                self._sock.sendall(body)
        except TimeoutError:
            raise
        except OSError as error:
            if len(body) <= _SMALL_BODY:
                raise
            return error
        return None

    def _head(self, broken: OSError | None) -> tuple[int, dict[str, str]]:
        while True:
            line = self._reader.readline(_LONGEST_LINE)
            if not line:
                raise broken or ConnectionResetError("the connection was closed without a reply")
            if not line.startswith(b"HTTP/1.") or len(line) < 12:
                raise ValueError("the reply is not HTTP/1.1")
            status = int(line[9:12])
            headers = self._headers()
            if line.startswith(b"HTTP/1.0"):
                headers.setdefault("connection", "close")
            if status >= 200:
                return status, headers

    def _headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        for _ in range(_MOST_HEADERS):
            line = self._reader.readline(_LONGEST_LINE)
            if line in (b"\r\n", b"\n"):
                return headers
            name, colon, value = line.partition(b":")
            if not colon or not line.endswith(b"\n"):
                raise ValueError("a header of the reply cannot be read")
            # S3 sends UTF-8 in user metadata where it was written so; other bytes stay readable.
            key = name.decode("latin-1").lower()
            text = value.strip().decode("utf-8", "surrogateescape")
            headers[key] = f"{headers[key]}, {text}" if key in headers else text
        raise ValueError("the reply has too many headers")

    def close(self) -> None:
        self.reusable = False
        self._reader.close()
        self._sock.close()


class Reply:
    """The head of a reply, and its body as it arrives. The connection is free once it was read."""

    __slots__ = ("_chunked", "_closing", "_connection", "_left", "_reader", "headers", "status")

    def __init__(
        self,
        connection: Connection,
        reader: BinaryIO,
        status: int,
        headers: Mapping[str, str],
        *,
        empty: bool,
        closing: bool,
    ) -> None:
        self.status = status
        self.headers = headers
        self._connection = connection
        self._reader = reader
        self._chunked = not empty and headers.get("transfer-encoding", "").lower() == "chunked"
        length = headers.get("content-length")
        self._left: int | None = 0 if empty else (int(length) if length else None)
        self._closing = closing or (self._left is None and not self._chunked)
        if self._left == 0:
            self._done()

    def _done(self) -> None:
        self._connection.reusable = not self._closing

    def read(self, most: int = -1) -> bytes:
        """The whole body. WireError where the connection ends before it does."""
        if self._left is not None and not self._chunked:
            return self._exactly(self._left) if self._left else b""
        return b"".join(self.pieces(_BUFFER))

    def pieces(self, size: int) -> Iterator[bytes]:
        """The body in pieces of at most ``size``."""
        if self._chunked:
            yield from self._chunks(size)
        elif self._left is None:
            while piece := self._read(size):
                yield piece
        else:
            while self._left:
                yield self._exactly(min(size, self._left))

    def _exactly(self, count: int) -> bytes:
        data = self._read(count)
        if len(data) != count:
            raise WireError("the reply was cut off", sent=True, answered=True)
        if self._left is not None and not self._chunked:
            self._left -= count
            if self._left == 0:
                self._done()
        return data

    def _chunks(self, size: int) -> Iterator[bytes]:
        while left := self._chunk_size():
            while left:
                piece = self._exactly(min(size, left))
                left -= len(piece)
                yield piece
            self._line()
        while self._line() not in (b"\r\n", b"\n"):
            pass
        self._chunked, self._left = False, 0
        self._done()

    def _chunk_size(self) -> int:
        try:
            return int(self._line().partition(b";")[0], 16)
        except ValueError as error:
            raise WireError("a chunk of the reply has no size", sent=True, answered=True) from error

    def _line(self) -> bytes:
        try:
            line = self._reader.readline(_LONGEST_LINE)
        except OSError as error:
            raise _lost(error) from error
        if not line:
            raise WireError("the reply was cut off", sent=True, answered=True)
        return line

    def _read(self, count: int) -> bytes:
        try:
            return self._reader.read(count)
        except OSError as error:
            raise _lost(error) from error


def _lost(error: OSError) -> WireError:
    timed_out = isinstance(error, TimeoutError)
    return WireError(str(error), sent=True, answered=True, timed_out=timed_out)
