"""The units of one piece: made while a segment is written, checked while it is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from calque.store.chunks import Buffer, ChunkReader
from calque.store.nodes.erasure import Coder, open_unit, share_hash

_WRITE_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True)
class Stripes:
    """A run of stripes of a segment, and where their units lie in each piece."""

    coder: Coder
    encrypted_size: int
    first: int
    count: int

    @classmethod
    def of_range(cls, coder: Coder, encrypted_size: int, offset: int, length: int) -> Stripes:
        """The stripes that hold ``length`` (at least 1) encrypted bytes from ``offset``."""
        size = coder.redundancy.stripe_size
        first = offset // size
        return cls(coder, encrypted_size, first, (offset + length - 1) // size - first + 1)

    def from_stripe(self, stripe: int) -> Stripes:
        """The rest of the run from a stripe on."""
        return Stripes(self.coder, self.encrypted_size, stripe, self.last - stripe)

    @property
    def last(self) -> int:
        """The number after the last stripe."""
        return self.first + self.count

    @property
    def offset(self) -> int:
        """Where the run begins in the encrypted segment."""
        return self.first * self.coder.redundancy.stripe_size

    def size_of(self, stripe: int) -> int:
        """Encrypted bytes of one stripe; the last of a segment may be shorter."""
        full = self.coder.redundancy.stripe_size
        return min(full, self.encrypted_size - stripe * full)

    @property
    def piece_range(self) -> tuple[int, int]:
        """Offset and length of the run's units within a piece."""
        full = self.coder.unit_size(self.coder.redundancy.stripe_size)
        end = (self.last - 1) * full + self.coder.unit_size(self.size_of(self.last - 1))
        return self.first * full, end - self.first * full


def shares_of(piece: bytes, chunks: Iterable[bytes], stripes: Stripes) -> Iterator[Buffer]:
    """The checked shares of a run, in order, from the bytes of :attr:`Stripes.piece_range`."""
    source = ChunkReader(chunks)
    try:
        for stripe in range(stripes.first, stripes.last):
            size = stripes.coder.unit_size(stripes.size_of(stripe))
            yield open_unit(piece, stripe, source.read(size), size)
    finally:
        source.close()


def seal_units(piece: bytes, shares: Iterable[Buffer]) -> Iterator[bytes]:
    """The bytes of a piece: each share with its hash, gathered into writes of about 1 MiB."""
    gathered: list[Buffer] = []
    size = 0
    for stripe, share in enumerate(shares):
        gathered += (share, share_hash(piece, stripe, share))
        size += len(share)
        if size >= _WRITE_AT_ONCE:
            yield b"".join(gathered)
            gathered, size = [], 0
    if gathered:
        yield b"".join(gathered)


def stripes_of(blocks: Iterable[bytes], stripe_size: int) -> Iterator[Buffer]:
    """Encrypted blocks of any size as stripes; a block that is a stripe passes without a copy."""
    source = ChunkReader(blocks)
    while stripe := source.read(stripe_size):
        yield stripe
