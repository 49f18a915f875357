"""The content hash of a staged file: a hash over the hashes of its blocks.

Blocks have a fixed length, so tasks that read different ranges of one file can each hash their own
blocks and the hashes be joined; the result is the same as that of one pass.

A Parquet file that is loaded by a copy is not read. In place of its hash stands which data file of
the table has its bytes: should the content be asked for one day, that file is hashed.
"""

from __future__ import annotations

from collections.abc import Iterable

import xxhash

from calque.values import MIB

BLOCK = 4 * MIB
"""Ranges that are hashed apart must begin at a multiple of this."""

_COPY = "copy:"


class ContentHash:
    """Hashes a run of bytes that begins at a block boundary."""

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._open = xxhash.xxh3_128()
        self._room = BLOCK

    def update(self, data: bytes | memoryview) -> None:
        view = memoryview(data)
        while len(view):
            taken = view[: self._room]
            self._open.update(taken)
            self._room -= len(taken)
            view = view[len(taken) :]
            if not self._room:
                self._close_block()

    def blocks(self) -> tuple[bytes, ...]:
        """The hashes of the blocks so far, the last one perhaps of a shorter block."""
        rest = (self._open.digest(),) if self._room < BLOCK else ()
        return (*self._blocks, *rest)

    def value(self) -> str:
        return join(self.blocks())

    def _close_block(self) -> None:
        self._blocks.append(self._open.digest())
        self._open = xxhash.xxh3_128()
        self._room = BLOCK


def join(blocks: Iterable[bytes]) -> str:
    """The content hash of a file from its block hashes in order."""
    return "x3:" + xxhash.xxh3_128(b"".join(blocks)).hexdigest()


def hash_of_copy(path: str) -> str:
    """What stands for the hash of a file whose bytes are those of this data file."""
    return _COPY + path


def copied_to(recorded: str) -> str | None:
    """The data file that stands for the hash; None where it is a hash."""
    return recorded.removeprefix(_COPY) if recorded.startswith(_COPY) else None


def content_hash(chunks: Iterable[bytes]) -> str:
    """The content hash of a whole file."""
    found = ContentHash()
    for chunk in chunks:
        found.update(chunk)
    return found.value()
