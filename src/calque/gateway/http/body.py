"""The body of a request: a length of bytes, or chunks of HTTP."""

from __future__ import annotations

import httptools

from calque.gateway.errors import S3Error
from calque.gateway.http.connection import Connection
from calque.gateway.http.head import LARGEST_HEAD, Head

_LEAVE = b"HTTP/1.1 100 Continue\r\n\r\n"


class RequestBody:
    """Reads a body off its connection; the first read tells a client that waits to send it."""

    def __init__(self, connection: Connection, head: Head) -> None:
        self._connection = connection
        self._head = head
        self._left = head.length
        self._held = b""
        self._overhead = 0
        self._was_read = False

    @property
    def is_over(self) -> bool:
        """Whether nothing of it is left on the connection, and what follows is a request."""
        if self._left is not None:
            return self._left == 0
        parser = self._head.parser
        return parser.is_over and not parser.is_followed

    def read(self, most: int, /) -> bytes:
        """Up to ``most`` bytes, empty at the end; an error when the client is gone."""
        if not self._was_read:
            self._was_read = True
            if self._head.waits_for_leave and not self.is_over and not self._connection.held:
                self._connection.send(_LEAVE)
        if self._left is None:
            return self._read_chunks(most)
        if not self._left:
            return b""
        block = self._connection.receive(min(most, self._left))
        self._left -= len(block)
        return block

    def _read_chunks(self, most: int) -> bytes:
        if not self._held:
            self._held = self._gather(most)
        block, self._held = self._held[:most], self._held[most:]
        return block

    def _gather(self, wanted: int) -> bytes:
        """What chunks hold, about as much as is wanted: a client may send single bytes."""
        parser, size = self._head.parser, 0
        while size < wanted and not parser.is_over:
            data = self._connection.receive_some()
            before = len(parser.blocks)
            try:
                parser.feed(data)
            except httptools.HttpParserError as error:
                raise _malformed() from error
            come = sum(map(len, parser.blocks[before:]))
            size += come
            # What is no content has an end as well: extensions of chunks, and what follows them.
            self._overhead = 0 if come else self._overhead + len(data)
            if self._overhead > LARGEST_HEAD:
                raise _malformed()
        blocks, parser.blocks = parser.blocks, []
        return b"".join(blocks)


def _malformed() -> S3Error:
    return S3Error("InvalidRequest", "The chunks of the body are malformed.")
