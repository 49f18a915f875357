"""A Bloom filter of piece ids: what is not in it is named by no segment.

A piece id is a hash already, so its first words are the hash; :func:`words_of` are what a filter
looks at, and all that has to travel to whoever fills it. Two filters of one size and seed join by
OR. Bits are set in place, so a filter takes no more memory while it is filled than when it is sent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from calque.errors import InvalidInput, MissingExtra
from calque.store.nodes.pieces import PIECE_ID_SIZE

try:
    import numpy as np
    from numpy.typing import NDArray
except ImportError as error:
    raise MissingExtra.of("store", "Garbage collection (numpy)") from error

FALSE_POSITIVES = 0.1
_SMALLEST = 1 << 16
"""Bits of the smallest filter. Two pieces share all their bits once in so many squared, which in a
small filter would be far more often than the share of false positives that was asked for."""
_WORDS = np.dtype([("first", "<u8"), ("second", "<u8")])
_DIGEST = np.dtype([("words", _WORDS), ("rest", f"V{PIECE_ID_SIZE - 1 - _WORDS.itemsize}")])
"""A piece id behind its version."""

WORDS_SIZE = _WORDS.itemsize
"""Bytes of a piece id that a filter looks at."""

_AT_ONCE = 50_000
"""Pieces that are put in together: what is computed for them stays in the processor's cache."""


def words_of(digests: bytes) -> bytes:
    """Of digests, one after the other (each what follows the version in a piece id), the words."""
    return np.frombuffer(digests, _DIGEST)["words"].tobytes()


@dataclass(frozen=True, slots=True)
class BloomShape:
    """Size, number of hashes and seed: filters of one shape can be joined."""

    bits: int
    hashes: int
    seed: int

    def __post_init__(self) -> None:
        sound = self.bits >= 8 and self.bits % 8 == 0 and 1 <= self.hashes <= 32
        if not sound or not 0 <= self.seed < 2**64:
            raise InvalidInput(f"a filter cannot have {self.bits} bits and {self.hashes} hashes")

    @classmethod
    def of(cls, pieces: int, seed: int, false_positives: float = FALSE_POSITIVES) -> BloomShape:
        """The usual size for so many pieces."""
        if not 0 < false_positives < 1:
            raise InvalidInput(f"a share of false positives is between 0 and 1: {false_positives}")
        bits_each = -math.log(false_positives) / math.log(2) ** 2
        bits = max(math.ceil(pieces * bits_each), _SMALLEST)
        return cls(-(-bits // 8) * 8, max(math.ceil(-math.log2(false_positives)), 1), seed)


class BloomFilter:
    """Filled with the words of piece ids. One made from a ``table`` can only be asked."""

    def __init__(self, shape: BloomShape, table: bytes | memoryview | None = None) -> None:
        self.shape = shape
        if table is None:
            self._table: NDArray[np.uint8] = np.zeros(shape.bits // 8, np.uint8)
        else:
            self._table = np.frombuffer(table, np.uint8)
        if len(self._table) * 8 != shape.bits:
            raise InvalidInput(f"a filter of {shape.bits} bits has {len(self._table)} bytes")

    @property
    def table(self) -> memoryview:
        """The bits themselves, not a copy of them."""
        return self._table.data.toreadonly()

    def add(self, words: bytes | bytearray) -> None:
        """Put pieces in, given by their words."""
        if len(words) % WORDS_SIZE:
            raise InvalidInput(f"pieces are put in by {WORDS_SIZE} bytes each, not {len(words)}")
        if not self._table.flags.writeable:  # `at` would write all the same
            raise InvalidInput("a filter that was read can only be asked")
        whole = np.frombuffer(words, _WORDS)
        small = np.uint32 if self.shape.bits <= 2**32 else np.uint64  # sorted in half the time
        for first in range(0, len(whole), _AT_ONCE):
            some = self._positions(whole[first : first + _AT_ONCE])
            at = np.concatenate([each.astype(small) for each in some])
            # In their order: a filter larger than the processor's cache is then passed through
            # once, where every bit would be a wait for memory.
            at.sort()
            np.bitwise_or.at(self._table, at >> 3, _bit(at))

    def join(self, other: bytes | memoryview) -> None:
        """Put in what another filter of this shape holds."""
        if len(other) != len(self._table):
            raise InvalidInput("filters of two sizes cannot be joined")
        self._table |= np.frombuffer(other, np.uint8)

    def holds(self, pieces: Sequence[bytes]) -> NDArray[np.bool_]:
        """Of each piece id, whether it may be in; False is certain."""
        found = np.ones(len(pieces), np.bool_)
        words = np.frombuffer(b"".join(piece[1:] for piece in pieces), _DIGEST)["words"]
        for at in self._positions(words):
            found &= (self._table[at >> 3] & _bit(at)) != 0
        return found

    def _positions(self, words: NDArray[np.void]) -> Iterable[NDArray[np.int64]]:
        """Double hashing: the second word steps on from the first."""
        at = words["first"] ^ np.uint64(self.shape.seed)
        # Odd, or a step of zero would look at one bit only.
        step = (words["second"] + np.uint64(self.shape.seed)) | np.uint64(1)
        for _ in range(self.shape.hashes):
            yield (at % np.uint64(self.shape.bits)).astype(np.int64)
            at = at + step


def _bit(at: NDArray[np.integer[Any]]) -> NDArray[np.uint8]:
    return np.left_shift(np.uint8(1), (at & 7).astype(np.uint8))
