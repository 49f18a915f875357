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
        body = header + self.pieces.table
        return body + blake2b(body, digest_size=_SEAL).digest()

    @classmethod
    def from_bytes(cls, data: bytes) -> PieceFilter:
        """The filter; IntegrityError when a byte of it is missing or changed."""
        body, seal = data[:-_SEAL], data[-_SEAL:]
        if len(body) < _HEADER.size or blake2b(body, digest_size=_SEAL).digest() != seal:
            raise IntegrityError("the filter is damaged: nothing is collected by it")
        magic, version, store, node, run, older, seed, bits, hashes = _HEADER.unpack_from(body)
        if (magic, version) != (_MAGIC, _VERSION):
            raise IntegrityError(f"the filter has version {version}, which this node does not know")
        table = BloomFilter(BloomShape(bits, hashes, seed), body[_HEADER.size :])
        return cls(store, node, run, older, table)
