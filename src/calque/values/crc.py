"""CRCs of pieces joined into the one of the whole, without the bytes.

A CRC is the remainder of a polynomial. Of two pieces in a row, the remainder of the first is moved
up by as many places as the second has bits, which is a multiplication modulo the CRC's polynomial,
and added to the second's. The three here are reflected (bit 0 is the highest power) and begin and
end with all ones, which cancels out.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from calque.values.metadata import Checksum


@dataclass(frozen=True, slots=True)
class _Kind:
    polynomial: int
    width: int


_KINDS: Mapping[str, _Kind] = MappingProxyType(
    {
        "crc32": _Kind(0xEDB88320, 32),
        "crc32c": _Kind(0x82F63B78, 32),
        "crc64nvme": _Kind(0x9A6C9329AC4BC9B5, 64),
    }
)

JOINABLE = _KINDS.keys()


def join_crcs(algorithm: str, pieces: Iterable[tuple[str, int]]) -> Checksum:
    """The checksum of all pieces in their order: of each its value (base64) and its size.

    Raises ValueError for a value that is none of this algorithm.
    """
    kind = _KINDS[algorithm]
    whole = 0
    for value, size in pieces:
        whole = _multiply(kind, _shift_by(kind, size), whole) ^ _number_of(kind, value)
    digest = whole.to_bytes(kind.width // 8, "big")
    return Checksum(algorithm, base64.b64encode(digest).decode())


def _number_of(kind: _Kind, value: str) -> int:
    try:
        digest = base64.b64decode(value, validate=True)
    except binascii.Error as error:
        raise ValueError(f"no checksum: {value!r}") from error
    if len(digest) * 8 != kind.width:
        raise ValueError(f"a checksum of {len(digest)} bytes, not {kind.width // 8}: {value!r}")
    return int.from_bytes(digest, "big")


@lru_cache(maxsize=16)  # all parts of a copy but the last have one size
def _shift_by(kind: _Kind, size: int) -> int:
    """The polynomial x to the power of as many bits as there are in ``size`` bytes."""
    shift, power = 1 << (kind.width - 1), 1 << (kind.width - 9)
    while size:
        if size & 1:
            shift = _multiply(kind, shift, power)
        power = _multiply(kind, power, power)
        size >>= 1
    return shift


def _multiply(kind: _Kind, one: int, other: int) -> int:
    product, bit = 0, 1 << (kind.width - 1)
    while one and bit:
        if one & bit:
            product ^= other
            one ^= bit
        other = (other >> 1) ^ (kind.polynomial if other & 1 else 0)
        bit >>= 1
    return product
