"""A request and a response without a server in them.

Text of a request is what came over the wire, one character a byte (latin-1): signatures are made
of bytes, and only what was verified is decoded.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, overload
from urllib.parse import unquote_to_bytes

from calque.store.uplink.encryption.blocks import DEFAULT_BLOCK
from calque.store.uplink.encryption.cipher import TAG_SIZE

T = TypeVar("T")

BLOCK = DEFAULT_BLOCK - TAG_SIZE
"""Bytes that are read, hashed, encrypted and sent at a time: what one encrypted block holds."""


class Reader(Protocol):
    """The body of a request, as HTTP framed it."""

    def read(self, most: int, /) -> bytes:
        """Up to ``most`` bytes, empty at the end; an error when the client is gone."""
        ...


class Headers(Mapping[str, str]):
    """Headers by their lower-case names; those that came several times are joined by commas."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._values: dict[str, str] = {}
        for name, value in pairs:
            name = name.lower()
            before = self._values.get(name)
            self._values[name] = value if before is None else f"{before},{value}"

    def __getitem__(self, name: str) -> str:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    # What a mapping gives by itself is some times slower, and a request asks twenty times.

    def __contains__(self, name: object) -> bool:
        return name in self._values

    @overload
    def get(self, name: str, /) -> str | None: ...
    @overload
    def get(self, name: str, default: T, /) -> str | T: ...
    def get(self, name: str, default: T | None = None, /) -> str | T | None:
        return self._values.get(name, default)

    def items(self) -> ItemsView[str, str]:
        return self._values.items()


@dataclass(frozen=True)
class Request:
    """One request: the path and the query are raw, as they were signed."""

    method: str
    path: str
    query: str = ""
    headers: Headers = field(default_factory=lambda: Headers(()))
    body: Reader = field(default_factory=lambda: NoBody(), repr=False)
    secure: bool = False

    def __repr__(self) -> str:
        # Neither query nor headers: presigned queries and authorisations are secrets.
        return f"Request({self.method} {self.path})"


@dataclass
class Response:
    """What goes back: the body is bytes, or blocks that are made while they are sent."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | Iterator[bytes] = b""


class NoBody:
    """The body of a request that has none."""

    def read(self, most: int, /) -> bytes:
        return b""


def parse_query(query: str) -> list[tuple[str, str]]:
    """Names and values, decoded to one character a byte; ``?uploads`` and ``?uploads=`` are one."""
    return [
        (_decode(name), _decode(value))
        for pair in query.split("&")
        if pair
        for name, _, value in (pair.partition("="),)
    ]


def _decode(text: str) -> str:
    return unquote_to_bytes(text.replace("+", " ").encode("latin-1")).decode("latin-1")
