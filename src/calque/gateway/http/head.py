"""The head of a request: parsed by httptools, once all of it is here."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import httptools

from calque.gateway.request import Headers

END = b"\r\n\r\n"
LARGEST_HEAD = 64 * 1024
"""Bytes of a head, and of what may follow a chunked body."""


@dataclass(slots=True)
class Head:
    """What a request begins with. ``length`` is None of a body in chunks of HTTP, which
    ``parser`` then takes apart; it has read the head and nothing else."""

    method: str
    path: str
    query: str
    headers: Headers
    length: int | None
    may_continue: bool
    """Whether the client lets the connection stay open."""
    is_old: bool
    """Whether it is of HTTP/1.0, which knows no leave, and closes unless it is told otherwise."""
    parser: _Parser = field(repr=False)

    @property
    def waits_for_leave(self) -> bool:
        """Whether the client sends its body when it is told to."""
        expected = self.headers.get("expect", "").lower().split(",")
        return not self.is_old and "100-continue" in map(str.strip, expected)


def parse_head(data: bytes) -> Head | None:
    """A head with its empty line; None for what is none, or leaves open where its body ends."""
    parser = _Parser()
    try:
        parser.feed(data)
        path, _, query = parser.split_target()
        headers = Headers(parser.headers)
    except (httptools.HttpParserError, ValueError):
        return None
    length = _length_of(headers)
    if not parser.is_head_complete or length == _UNKNOWN or not parser.names_its_host:
        return None
    # Chunks came with HTTP/1.1: who speaks 1.0, and stands before us, does not see where they end.
    if length == _CHUNKED and parser.version != _NEW:
        return None
    return Head(
        parser.method,
        path,
        query,
        headers,
        None if length == _CHUNKED else length,
        parser.may_continue,
        parser.version == _OLD,
        # After a request to upgrade the parser has ended: chunks need a new one.
        _Parser.of_chunks() if length == _CHUNKED and parser.is_over else parser,
    )


_CHUNKED, _UNKNOWN = -1, -2
_OLD, _NEW = "1.0", "1.1"


def _length_of(headers: Headers) -> int:
    """Bytes of the body. Two that read one connection must never differ about where it ends."""
    coding, length = headers.get("transfer-encoding"), headers.get("content-length")
    if coding is not None:
        return _CHUNKED if coding.strip(" \t").lower() == "chunked" and length is None else _UNKNOWN
    if length is None:
        return 0
    is_number = length.isascii() and length.isdigit() and len(length) <= 19
    return int(length) if is_number else _UNKNOWN


class _Parser:
    """httptools over one request: its head, and its body where that comes in chunks."""

    def __init__(self) -> None:
        self._parser: Any = httptools.HttpRequestParser(self)
        self._target = b""
        self.headers: list[tuple[str, str]] = []
        self.blocks: list[bytes] = []
        """Content that was parsed and not taken yet."""
        self.is_head_complete = False
        self.is_over = False
        self.is_followed = False
        """Whether something came behind the end: it was swallowed, and the connection with it."""
        self.may_continue = False

    @classmethod
    def of_chunks(cls) -> _Parser:
        """One that has read a head, which says that chunks follow."""
        made = cls()
        made.feed(b"PUT / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n")
        return made

    def feed(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            # No other protocol is spoken here: the request is taken for what it is without that.
            self.may_continue = False

    @property
    def method(self) -> str:
        return str(self._parser.get_method().decode("latin-1"))

    @property
    def version(self) -> str:
        return str(self._parser.get_http_version())

    @property
    def names_its_host(self) -> bool:
        """Whether it is of a version that is spoken here, and all agree about whom it is for: one
        host, and the same where the target names it too."""
        hosts = [value for name, value in self.headers if name.lower() == "host"]
        if self.version not in (_OLD, _NEW) or len(hosts) != 1:
            return self.version == _OLD and not hosts
        scheme, is_absolute, rest = self._target.partition(b"://")
        if self._target.startswith(b"/") or not is_absolute:
            return True
        named = re.split(rb"[/?#]", rest, maxsplit=1)[0]
        is_http = scheme.lower() in (b"http", b"https")
        return is_http and named.lower() == hosts[0].lower().encode("latin-1")

    def split_target(self) -> tuple[str, str, str]:
        """Path and query as they were sent."""
        if self._target.startswith(b"/"):
            return self._target.decode("latin-1").partition("?")
        url = httptools.parse_url(self._target)
        path, query = url.path or b"/", url.query or b""
        return path.decode("latin-1"), "?", query.decode("latin-1")

    # What httptools calls.

    def on_message_begin(self) -> None:
        self.is_followed = self.is_over

    def on_url(self, url: bytes) -> None:
        self._target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        # What follows a chunked body is no header: nobody has signed it.
        if not self.is_head_complete:
            self.headers.append((name.decode("latin-1"), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        if not self.is_head_complete:
            self.may_continue = self._parser.should_keep_alive()
        self.is_head_complete = True

    def on_body(self, body: bytes) -> None:
        if not self.is_over:
            self.blocks.append(body)

    def on_message_complete(self) -> None:
        self.is_over = True
