"""Pieces, packed: which piece lies on which node, in two small numbers each.

A piece is (number, node alias), both as variable-length integers, in rising order of the
number, after one byte that tells the version of the packing. The number is stored as the
distance from the one before, so a usual piece takes two bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

from calque.errors import IntegrityError

VERSION = 1
MOST_PIECES = 255
"""No segment has more, so no number is larger than this."""

_HINT = "`calque store fsck` names the segment."


def pack(pieces: Iterable[tuple[int, int]]) -> bytes:
    """Pack pairs of piece number and node alias."""
    packed = bytearray((VERSION,))
    before = -1
    for number, alias in sorted(pieces):
        _put(packed, number - before - 1)
        _put(packed, alias)
        before = number
    return bytes(packed)


def unpack(packed: bytes) -> list[tuple[int, int]]:
    """The pairs that :func:`pack` was given, by number; there is at least one."""
    if len(packed) < 2 or packed[0] != VERSION:
        raise IntegrityError("packed pieces are damaged or of an unknown version", hint=_HINT)
    if packed.isascii() and len(packed) % 2:
        # Every number is one byte, as in most stores: a scan spends its time here.
        pieces = [
            (gap + at, alias)
            for at, (gap, alias) in enumerate(
                zip(accumulate(packed[1::2]), packed[2::2], strict=True)
            )
        ]
    else:
        pieces = _unpack_long(packed)
    if pieces[-1][0] >= MOST_PIECES:
        raise IntegrityError("packed pieces have a number that no piece has", hint=_HINT)
    return pieces


def _unpack_long(packed: bytes) -> list[tuple[int, int]]:
    pieces: list[tuple[int, int]] = []
    at, before = 1, -1
    while at < len(packed):
        gap, at = _take(packed, at)
        alias, at = _take(packed, at)
        before += gap + 1
        pieces.append((before, alias))
    return pieces


def unpack_if_readable(packed: bytes) -> list[tuple[int, int]]:
    """As :func:`unpack`; nothing where the list is damaged, so that others are not held up."""
    try:
        return unpack(packed)
    except IntegrityError:
        return []


def _put(packed: bytearray, number: int) -> None:
    while number >= 0x80:
        packed.append(number & 0x7F | 0x80)
        number >>= 7
    packed.append(number)


def _take(packed: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if at >= len(packed):
            raise IntegrityError("packed pieces end in the middle of a number", hint=_HINT)
        byte = packed[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
