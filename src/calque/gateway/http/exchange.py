"""One request and its answer, in the thread that carries it out."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping
from http import HTTPStatus

from calque.errors import CalqueError
from calque.gateway.errors import ClientGone
from calque.gateway.http.body import RequestBody
from calque.gateway.http.connection import Connection
from calque.gateway.http.head import Head, parse_head
from calque.gateway.request import Request, Response
from calque.store.callers import act_for_caller

Handle = Callable[[Request], Response]

_PHRASES = {each.value: each.phrase for each in HTTPStatus}
_WITHOUT_BODY = (204, 304)
_NO_REQUEST = (
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\ncontent-length: 21\r\n"
    b"connection: close\r\n\r\nThis is no request.\r\n"
)
_NO_ROOM = (
    b"HTTP/1.1 503 Slow Down\r\ncontent-length: 0\r\nretry-after: 1\r\nconnection: close\r\n\r\n"
)
_log = logging.getLogger(__name__)


def refuse_for_room(connection: Connection) -> None:
    """Send a client away whose request would wait with too many others; nothing waits here."""
    with contextlib.suppress(ClientGone):
        connection.send(_NO_ROOM)
    connection.close()


def run_exchange(connection: Connection, handle: Handle, is_last: Callable[[], bool]) -> bool:
    """Answer the request whose head has come; whether another may follow it.

    ``is_last`` is asked when the answer is there: the client is told then that none may.
    ClientGone when nothing more can be said.
    """
    data = connection.take_head()
    head = parse_head(data) if data is not None else None
    if head is None:
        connection.send(_NO_REQUEST)
        return False
    body = RequestBody(connection, head)
    request = Request(
        head.method, head.path, head.query, head.headers, body, secure=connection.is_secure
    )
    # A request may wait for the database until its client gives up and hangs up: what that one
    # takes for failed must not be done after all.
    with act_for_caller(connection.is_open):
        response = handle(request)
    # Where a body was not asked for, or not read to its end, nobody knows where the next request
    # begins: only on a new connection can both sides be sure.
    stays = head.may_continue and body.is_over and not is_last()
    _Answer(connection, head, stays).send(response)
    return stays


class _Answer:
    """Sends a response."""

    def __init__(self, connection: Connection, head: Head, stays: bool) -> None:
        self._connection = connection
        self._head = head
        self._stays = stays

    def send(self, response: Response) -> None:
        body, headers = response.body, response.headers
        if isinstance(body, bytes):
            if response.status not in _WITHOUT_BODY:
                headers.setdefault("Content-Length", str(len(body)))
            self._connection.send(self._encode(response.status, headers), body)
            return
        try:
            self._send_blocks(self._encode(response.status, headers), body)
        finally:
            close = getattr(body, "close", None)
            if close is not None:
                close()

    def _send_blocks(self, head: bytes, blocks: Iterator[bytes]) -> None:
        """As they are made: the system sends one while the next is decrypted."""
        try:
            for block in blocks:
                self._connection.send(*filter(None, (head, block)))
                head = b""
            if head:
                self._connection.send(head)
        except ClientGone:
            raise
        except CalqueError as error:
            # The head is sent: all that is left is to break off, so that nobody takes a part of
            # the object for the whole.
            _log.warning("a download broke off: %s", type(error).__name__)
            raise ClientGone("the answer could not be finished") from error

    def _encode(self, status: int, headers: Mapping[str, str]) -> bytes:
        lines = [f"HTTP/1.1 {status} {_PHRASES.get(status, '')}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if not self._stays:
            lines.append("Connection: close")
        elif self._head.is_old:
            lines.append("Connection: keep-alive")
        text = "\r\n".join(lines)
        if text.count("\n") >= len(lines):  # one header must never become two
            text = "\r\n".join(" ".join(line.splitlines()) for line in lines)
        return (text + "\r\n\r\n").encode("latin-1", "replace")
