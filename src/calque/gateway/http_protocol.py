"""HTTP as uvicorn speaks it, with ends that it does not set: how long a head is, and takes."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LARGEST_HEAD = 64 * 1024
"""Bytes of a request outside its body, some more with what comes in the same packet."""
HEAD_PATIENCE = 60.0
"""Seconds that a client has for a head, from its first byte, or from the connection on."""


class BoundedProtocol(HttpToolsProtocol):
    """A connection. What follows a chunked body (trailers of HTTP) is bounded, and left unread:
    no client of S3 sends any, and a header that comes after the head was authorised is none."""

    _overhead = 0
    _has_moved = False
    _is_in_head = True
    _head_since = 0.0
    _check: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._head_since = self.loop.time()
        self._check_later()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._check is not None:
            self._check.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._overhead > LARGEST_HEAD:
            self._give_up()
            return
        self._has_moved = False
        super().data_received(data)
        # Where a head or a body ended or went on in these bytes, what follows is counted anew.
        self._overhead = 0 if self._has_moved else self._overhead + len(data)

    def on_message_begin(self) -> None:
        self._is_in_head, self._head_since = True, self.loop.time()
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._is_in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._is_in_head, self._has_moved = False, True
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._has_moved = True
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._has_moved = True
        super().on_message_complete()

    def _check_later(self) -> None:
        self._check = self.loop.call_later(HEAD_PATIENCE / 2, self._check_head)

    def _check_head(self) -> None:
        """Close a connection that nothing can be answered on for too long: it takes a place.

        It waits for a head, or for the rest of a body whose request was answered. Silence after an
        answer has a time of its own, and while one is made nothing of the next request is read.
        """
        is_answering = self.cycle is not None and not self.cycle.response_complete
        is_silent = self.timeout_keep_alive_task is not None
        if is_answering or is_silent:
            self._head_since = self.loop.time()
        elif self.loop.time() - self._head_since > HEAD_PATIENCE:
            self.transport.close()
            return
        self._check_later()

    def _give_up(self) -> None:
        if self.cycle is not None and self.cycle.response_started:
            self.transport.close()  # a second answer in the middle of the first would be nonsense
        else:
            self.send_400_response("The head of the request is too long.")
