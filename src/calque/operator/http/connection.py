"""HTTP/1.1 over one kept-alive connection, no more than the clouds need and little CPU.

Requests and replies are written and read here, because the parser of ``http.client`` alone costs as
much as the rest of a request.
"""

from __future__ import annotations

import http.client
import io
import re
import select
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from calque.operator.http.waiting_time import CalledOffError, Incoming, Patience

_LONGEST_LINE = 65536
_MOST_HEADERS = 256
_BUFFER = 65536
_SMALL_BODY = 65536
"""Bodies up to this travel in one segment with their head."""
_PIECE = 256 * 1024
_LONGEST_WHOLE = 256 * 1024 * 1024
"""Of what is held in memory at once; the longest pages of listings are a tenth of it."""
_BLANK = (b"\r\n", b"\n")
_META = "x-ms-meta-"
_DESCRIBING = ("x-amz-meta-", _META, "content-", "cache-control", "expires")
"""What users have written of an object. S3 sends UTF-8 where they did; other bytes go back as they
came. Elsewhere (ETags, versions) such bytes mean nothing, and nothing is ever named by them."""
_LENGTH = re.compile(r"[0-9]{1,19}")
_CHUNK_SIZE = re.compile(rb"[0-9A-Fa-f]{1,15}")


class WireError(Exception):
    """The exchange failed. ``answered``: some of a reply came; ``sent``: the request left us.

    ``stopped``: our own side has called it off. ``nonsense``: the reply is no HTTP that could be
    read, so the same request would meet the same again.
    """

    def __init__(
        self,
        why: str,
        *,
        sent: bool,
        answered: bool,
        timed_out: bool = False,
        stopped: bool = False,
        nonsense: bool = False,
    ) -> None:
        super().__init__(why)
        self.sent = sent
        self.answered = answered
        self.timed_out = timed_out
        self.stopped = stopped
        self.nonsense = nonsense


class CutOffError(WireError):
    """The connection ended before the reply did."""


class _NonsenseError(ValueError):
    """What came is no HTTP."""


class Connection:
    """One socket, one exchange at a time."""

    __slots__ = ("_incoming", "_reader", "_sock", "reusable", "used")

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._incoming = Incoming(sock)
        self._reader = io.BufferedReader(self._incoming, _BUFFER)
        self.used = False
        self.reusable = True

    def stale(self) -> bool:
        """Whether an idle connection has bytes waiting: it was closed, or speaks out of turn."""
        if isinstance(self._sock, ssl.SSLSocket) and self._sock.pending():
            return True
        # Not select: it knows no file beyond the first 1,024 of a process.
        waiting = select.poll()
        waiting.register(self._sock, select.POLLIN)
        return bool(waiting.poll(0))

    def exchange(
        self, head: bytes, body: bytes | memoryview, *, bodiless: bool, patience: Patience
    ) -> Reply:
        """Send a request and read the head of its reply; ``bodiless`` for HEAD."""
        sent = False
        # Until the reply was read to its end: a half-read one would be taken for the next answer.
        self.reusable = False
        self._incoming.patience = patience
        try:
            broken = self._send(head, body, patience)
            sent = True
            status, headers = self._head(broken)
            closing = headers.get("connection", "").lower() == "close" or broken is not None
            empty = bodiless or status in (204, 304)
            return Reply(self, self._reader, status, headers, empty=empty, closing=closing)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise WireError(
                str(error) or type(error).__name__,
                sent=sent,
                answered=isinstance(error, ValueError),
                timed_out=isinstance(error, TimeoutError),
                stopped=isinstance(error, CalledOffError),
                nonsense=isinstance(error, _NonsenseError),
            ) from error
        finally:
            self.used = True

    def _send(self, head: bytes, body: bytes | memoryview, patience: Patience) -> OSError | None:
        """Send everything; a server may refuse and hang up before it has read it all."""
        try:
            # One system call and one segment instead of two.
            if len(body) <= _SMALL_BODY:
                self._send_all(head + body, patience)
            else:
                self._send_all(head, patience)
                self._send_all(body, patience)
        except (TimeoutError, CalledOffError):
            raise
        except OSError as error:
            # A refusal may be waiting although the line broke: a large body is refused before its
            # end.
            if len(body) <= _SMALL_BODY:
                raise
            return error
        return None

    def _send_all(self, data: bytes | memoryview, patience: Patience) -> None:
        with memoryview(data) as view:
            sent = 0
            while sent < len(view):
                sent += patience.wait(self._sock, partial(self._sock.send, view[sent:]))

    def _head(self, broken: OSError | None) -> tuple[int, dict[str, str]]:
        for _ in range(_MOST_HEADERS):
            line = self._reader.readline(_LONGEST_LINE)
            if not line:
                raise broken or ConnectionResetError("the connection was closed without a reply")
            if not line.startswith(b"HTTP/1.") or not line[9:12].isdigit():
                raise ValueError("the reply is not HTTP/1.1")
            status = int(line[9:12])
            headers = self._headers()
            # HTTP/1.0 closes after each reply unless it says otherwise.
            if line.startswith(b"HTTP/1.0"):
                headers.setdefault("connection", "close")
            if status >= 200:
                return status, headers
        raise _NonsenseError("the reply never comes to its status")

    def _headers(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        for _ in range(_MOST_HEADERS):
            line = self._reader.readline(_LONGEST_LINE)
            if line in _BLANK:
                return headers
            name, colon, value = line.partition(b":")
            if not colon or not line.endswith(b"\n"):
                raise _NonsenseError("a header of the reply cannot be read")
            key = name.decode("latin-1").lower()
            if key.startswith(_META):
                # Azure keeps the case that names of metadata were given, and copies keep it too.
                key = _META + name[len(_META) :].decode("latin-1")
            kept = "surrogateescape" if key.startswith(_DESCRIBING) else "replace"
            text = value.strip().decode("utf-8", kept)
            headers[key] = f"{headers[key]}, {text}" if key in headers else text
        raise _NonsenseError("the reply has too many headers")

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
        reader: io.BufferedReader[Incoming],
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
        self._chunked = _is_chunked(headers) and not empty
        length = _content_length(headers)
        self._left: int | None = 0 if empty else length
        self._closing = closing or (self._left is None and not self._chunked)
        if self._left == 0 and not self._chunked:
            self._free_connection()

    def _free_connection(self) -> None:
        self._connection.reusable = not self._closing

    def _end(self) -> None:
        self._chunked, self._left = False, 0
        self._free_connection()

    def read(self) -> bytes:
        """The whole body. WireError where the connection ends before it does."""
        pieces, size = [], 0
        for piece in self.pieces(_PIECE):
            size += len(piece)
            if size > _LONGEST_WHOLE:
                raise _nonsense(f"the reply has more than {_LONGEST_WHOLE} bytes")
            pieces.append(piece)
        return b"".join(pieces)

    def pieces(self, size: int) -> Iterator[bytes]:
        """The body in pieces of at most ``size``; what came before a cut is given out first."""
        if self._chunked:
            yield from self._chunks(size)
        elif self._left is None:
            yield from self._until_closed(size)
            return
        else:
            # Free with the last byte and not at the end of the iteration: whoever knows the size
            # asks for no more after it.
            yield from self._read_count(self._left, size, read_all=self._end)
            return
        self._end()

    def _read_count(
        self, count: int, size: int, read_all: Callable[[], None] = lambda: None
    ) -> Iterator[bytes]:
        while count:
            piece, broken = self._read(min(size, count))
            count -= len(piece)
            if not count:
                read_all()
            if piece:
                yield piece
            if broken is not None:
                raise broken

    def _until_closed(self, size: int) -> Iterator[bytes]:
        while True:
            piece, broken = self._read(size)
            if piece:
                yield piece
            if isinstance(broken, CutOffError):
                return
            if broken is not None:
                raise broken

    def _chunks(self, size: int) -> Iterator[bytes]:
        while left := self._chunk_size():
            yield from self._read_count(left, size)
            if self._line() not in _BLANK:
                raise _nonsense("a chunk of the reply does not end where it says")
        for _ in range(_MOST_HEADERS):
            if self._line() in _BLANK:
                return
        raise _nonsense("the reply has too many trailers")

    def _chunk_size(self) -> int:
        size = self._line().partition(b";")[0].strip()
        if not _CHUNK_SIZE.fullmatch(size):
            raise _nonsense("a chunk of the reply has no size")
        return int(size, 16)

    def _line(self) -> bytes:
        try:
            line = self._reader.readline(_LONGEST_LINE)
        except OSError as error:
            raise _read_error(error) from error
        if not line:
            raise CutOffError("the reply was cut off", sent=True, answered=True)
        return line

    def _read(self, count: int) -> tuple[bytes, WireError | None]:
        """So many bytes; fewer only with the error that came instead of the rest."""
        got: list[bytes] = []
        while count:
            try:
                piece = self._reader.read1(count)
            except OSError as error:
                return b"".join(got), _read_error(error)
            if not piece:
                cut = CutOffError("the reply was cut off", sent=True, answered=True)
                return b"".join(got), cut
            got.append(piece)
            count -= len(piece)
        return got[0] if len(got) == 1 else b"".join(got), None


def _is_chunked(headers: Mapping[str, str]) -> bool:
    """Whether the body comes in chunks; any other coding on the way was not asked for."""
    coding = headers.get("transfer-encoding", "").strip().lower()
    if coding in ("", "identity"):
        return False
    if coding != "chunked":
        raise _NonsenseError(f"the reply is coded as {coding!r} on its way, which nobody asked for")
    return True


def _content_length(headers: Mapping[str, str]) -> int | None:
    stated = headers.get("content-length")
    if stated is None:
        return None
    # One that came twice was joined by a comma and is refused too: nobody knows which is meant.
    if not _LENGTH.fullmatch(stated):
        raise _NonsenseError(f"the reply has a length that is no number: {stated!r}")
    return int(stated)


def _nonsense(why: str) -> WireError:
    return WireError(why, sent=True, answered=True, nonsense=True)


def _read_error(error: OSError) -> WireError:
    lost = WireError(
        str(error),
        sent=True,
        answered=True,
        timed_out=isinstance(error, TimeoutError),
        stopped=isinstance(error, CalledOffError),
    )
    lost.__cause__ = error
    return lost
