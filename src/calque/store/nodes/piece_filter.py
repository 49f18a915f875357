"""What a node is sent: the filter of its pieces, for which store, of which run, sealed."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from hashlib import blake2b

from calque.errors import IntegrityError
from calque.store.nodes.bloom import BloomFilter, BloomShape

_HEADER = struct.Struct(">4sB16s32sQqQQB")
_MAGIC, _VERSION = b"CQBF", 1
_SEAL = 16


@dataclass(frozen=True, slots=True)
class PieceFilter:
    """Names what a node keeps. ``older_than`` (microseconds since 1970): younger pieces stay."""

    store_id: bytes
    node_id: bytes
    run: int
    older_than: int
    pieces: BloomFilter

    def to_bytes(self) -> bytes:
        """As it travels: a change of any byte is noticed."""
        shape = self.pieces.shape
        header = _HEADER.pack(
            _MAGIC, _VERSION, self.store_id, self.node_id, self.run, self.older_than,
            shape.seed, shape.bits, shape.hashes,
        )  # fmt: skip
        # Filters are the largest thing that a collection holds: copied once, and no more.
        return b"".join((header, self.pieces.table, _seal(header, self.pieces.table)))

    @classmethod
    def from_bytes(cls, data: bytes) -> PieceFilter:
        """The filter; IntegrityError when a byte of it is missing or changed."""
        body, seal = memoryview(data)[:-_SEAL], data[-_SEAL:]
        if len(body) < _HEADER.size or _seal(body) != seal:
            raise IntegrityError("the filter is damaged: nothing is collected by it")
        magic, version, store, node, run, older, seed, bits, hashes = _HEADER.unpack_from(body)
        if (magic, version) != (_MAGIC, _VERSION):
            raise IntegrityError(f"the filter has version {version}, which this node does not know")
        table = BloomFilter(BloomShape(bits, hashes, seed), body[_HEADER.size :])
        return cls(store, node, run, older, table)


def _seal(*parts: bytes | memoryview) -> bytes:
    state = blake2b(digest_size=_SEAL)
    for part in parts:
        state.update(part)
    return state.digest()
