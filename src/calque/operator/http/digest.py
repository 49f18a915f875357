"""Checksums of bytes as they arrive, held against those that were promised for them."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Protocol

from calque.errors import MissingExtra
from calque.values import Checksum

HASHES = frozenset({"md5", "sha1", "sha256", "sha512"})

Extend = Callable[[bytes, int], int]


class Running(Protocol):
    """A checksum under way."""

    def update(self, data: bytes, /) -> None: ...

    def digest(self) -> bytes: ...


class _Crc:
    """A CRC as hashlib has its hashes: fed piece by piece, written highest byte first."""

    def __init__(self, extend: Extend, width: int) -> None:
        self._extend = extend
        self._width = width
        self._value = 0

    def update(self, data: bytes, /) -> None:
        self._value = self._extend(data, self._value)

    def digest(self) -> bytes:
        return self._value.to_bytes(self._width, "big")


def _crc32c() -> _Crc:
    """By whichever library the installed service brings."""
    try:
        import google_crc32c
    except ImportError:
        return _Crc(_awscrt_checksum("crc32c"), 4)
    return _Crc(lambda data, value: int(google_crc32c.extend(value, data)), 4)


def _awscrt_checksum(name: str) -> Extend:
    try:
        from awscrt import checksums
    except ImportError as error:
        raise MissingExtra.of("s3", f"a checksum of kind {name}") from error
    extend: Extend = getattr(checksums, name)
    return extend


_CRCS: Mapping[str, Callable[[], _Crc]] = MappingProxyType(
    {
        "crc32": lambda: _Crc(zlib.crc32, 4),
        "crc32c": _crc32c,
        "crc64nvme": lambda: _Crc(_awscrt_checksum("crc64nvme"), 8),
    }
)


ALGORITHMS = HASHES | _CRCS.keys()
"""Those that can be made here of bytes; some CRCs need a library that a service brings."""


class Digest:
    """Hashes bytes by every algorithm that something is promised in.

    Algorithms that nobody here knows are left out: a server may bring new ones.
    """

    def __init__(self, promised: Iterable[Checksum]) -> None:
        self._promised = tuple(each for each in promised if each.algorithm in ALGORITHMS)
        # Several promises may be of one algorithm; the bytes are hashed once for all of them.
        kinds = {each.algorithm for each in self._promised}
        self._running: dict[str, Running] = {kind: start_hash(kind) for kind in kinds}

    def update(self, data: bytes) -> None:
        for running in self._running.values():
            running.update(data)

    def find_broken(self) -> tuple[Checksum, Checksum] | None:
        """A promise that the bytes do not keep, and what they have instead; None: all are kept."""
        for promised in self._promised:
            value = base64.b64encode(self._running[promised.algorithm].digest()).decode()
            if value != promised.value:
                return promised, Checksum(promised.algorithm, value)
        return None


def start_hash(algorithm: str) -> Running:
    """A hash or CRC by its lower-case name, fed piece by piece."""
    if algorithm in HASHES:
        return hashlib.new(algorithm, usedforsecurity=False)
    return _CRCS[algorithm]()


def crc_of(algorithm: str, data: bytes) -> str:
    """The checksum of bytes that are all there."""
    running = start_hash(algorithm)
    running.update(data)
    return base64.b64encode(running.digest()).decode()
