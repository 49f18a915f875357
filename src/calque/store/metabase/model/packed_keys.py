"""The wrapped keys of many segments, packed.

Keys and nonces have fixed sizes, so a list of them is one byte string each, in the order
of the positions; SQL cuts them apart again by row number. A copy of 10,000 segments then
sends three parameters and not 30,000.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    LargeBinary,
    bindparam,
    case,
    cast,
    func,
    literal_column,
)

from calque.errors import InvalidInput
from calque.store.metabase.model import checks as verify
from calque.store.metabase.model.records import (
    NONCE_SIZE,
    WRAPPED_KEY_SIZE,
    Position,
    SegmentKey,
)
from calque.store.metabase.model.schema import segments


@dataclass(frozen=True)
class PackedKeys:
    """Rising positions with their nonces and keys, each one after the other."""

    positions: tuple[int, ...] = ()
    nonces: bytes = b""
    keys: bytes = b""

    @classmethod
    def of(cls, given: Sequence[SegmentKey]) -> PackedKeys:
        """Pack ``given`` after checking sizes, order and that no position comes twice."""
        ordered = sorted(given)
        verify.segment_keys(ordered)
        return cls(
            tuple(key.position for key in ordered),
            b"".join([key.nonce for key in ordered]),
            b"".join([key.key for key in ordered]),
        )

    @classmethod
    def join(cls, chunks: Iterable[PackedKeys]) -> PackedKeys:
        """Several packs as one; positions must rise over all of them."""
        parts = list(chunks)
        positions = tuple(position for part in parts for position in part.positions)
        if any(a >= b for a, b in pairwise(positions)):
            raise InvalidInput("segment keys of different calls overlap")
        return cls(
            positions,
            b"".join([part.nonces for part in parts]),
            b"".join([part.keys for part in parts]),
        )

    def __len__(self) -> int:
        return len(self.positions)

    def pack_positions(self) -> bytes:
        """The positions as bytes, to be stored."""
        return array("q", self.positions).tobytes()

    @staticmethod
    def unpack_positions(packed: bytes) -> tuple[int, ...]:
        """What :meth:`pack_positions` was given."""
        return tuple(memoryview(packed).cast("q"))

    def must_match(self, stored: Sequence[int]) -> None:
        """Refuse unless there is exactly one key for each position of the source."""
        if len(self.positions) != len(stored):
            raise InvalidInput(
                f"{len(self.positions)} segment keys were given, "
                f"the source has {len(stored)} segments"
            )
        for given, actual in zip(self.positions, stored, strict=True):
            if given != actual:
                wrong = Position.decode(given)
                raise InvalidInput(
                    f"the source has no segment at position {wrong.part}/{wrong.number}"
                )


def _cut(name: str, size: int, number: ColumnElement[int]) -> ColumnElement[bytes]:
    """Entry ``number``, counted from 0, of the packed bytes bound as ``name``."""
    return func.substr(bindparam(name, type_=LargeBinary), number * size + 1, size)


_row = cast(func.row_number().over(order_by=segments.c.position), Integer) - 1

nonce_of_row = _cut("nonces", NONCE_SIZE, _row)
key_of_row = _cut("keys", WRAPPED_KEY_SIZE, _row)

# Of two at most, one is the first: that needs no rows to be counted.
_of_two = case(
    (segments.c.position == bindparam("first", type_=BigInteger), literal_column("0")),
    else_=literal_column("1"),
)
nonce_of_two = _cut("nonces", NONCE_SIZE, _of_two)
key_of_two = _cut("keys", WRAPPED_KEY_SIZE, _of_two)
