"""A Bloom filter of piece ids: what is not in it is named by no segment.

A piece id is a hash already, so its words are the hash. Two filters of one size and seed join by
OR. Bits are set in place, so a filter takes no more memory while it is filled than when it is sent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from calque.errors import InvalidInput, MissingExtra
from calque.store.nodes.pieces import PIECE_ID_SIZE

try:
    import numpy as np
    from numpy.typing import NDArray
except ImportError as error:
    raise MissingExtra.of("store", "Garbage collection (numpy)") from error

FALSE_POSITIVES = 0.1
_SMALLEST = 1024
_DIGEST = np.dtype([("first", "<u8"), ("second", "<u8"), ("rest", f"V{PIECE_ID_SIZE - 17}")])
"""A piece id behind its version."""


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
    """Filled with the digests of piece ids (what follows the version in an id)."""

    def __init__(self, shape: BloomShape, table: bytes | None = None) -> None:
        self.shape = shape
        if table is None:
            self._table: NDArray[np.uint8] = np.zeros(shape.bits // 8, np.uint8)
        else:
            self._table = np.frombuffer(bytearray(table), np.uint8)
        if len(self._table) * 8 != shape.bits:
            raise InvalidInput(f"a filter of {shape.bits} bits has {len(self._table)} bytes")

    @property
    def table(self) -> bytes:
        return self._table.tobytes()

    def add(self, digests: Sequence[bytes]) -> None:
        """Put pieces in."""
        for at in self._positions(digests):
            np.bitwise_or.at(self._table, at >> 3, _bit(at))

    def join(self, other: bytes) -> None:
        """Put in what another filter of this shape holds."""
        if len(other) != len(self._table):
            raise InvalidInput("filters of two sizes cannot be joined")
        self._table |= np.frombuffer(other, np.uint8)

    def holds(self, pieces: Sequence[bytes]) -> NDArray[np.bool_]:
        """Of each piece id, whether it may be in; False is certain."""
        found = np.ones(len(pieces), np.bool_)
        for at in self._positions([piece[1:] for piece in pieces]):
            found &= (self._table[at >> 3] & _bit(at)) != 0
        return found

    def _positions(self, digests: Sequence[bytes]) -> Iterable[NDArray[np.int64]]:
        """Double hashing: the second word steps on from the first."""
        words = np.frombuffer(b"".join(digests), _DIGEST)
        at = words["first"] ^ np.uint64(self.shape.seed)
        # Odd, or a step of zero would look at one bit only.
        step = (words["second"] + np.uint64(self.shape.seed)) | np.uint64(1)
        for _ in range(self.shape.hashes):
            yield (at % np.uint64(self.shape.bits)).astype(np.int64)
            at = at + step


def _bit(at: NDArray[np.int64]) -> NDArray[np.uint8]:
    return np.left_shift(np.uint8(1), (at & 7).astype(np.uint8))
