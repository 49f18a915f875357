"""Numbers that pyarrow gets wrong without a word: how they are found, before or after it read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc

MOST_DIGITS = 38
"""What 128 bits hold of a decimal."""
_DIGITS_ALIKE = bytes.maketrans(b"123456789.E", b"0000000000e")
_DIGIT, _MARK = (pa.scalar(byte, pa.uint8()) for byte in b"0e")
_ESCAPED = rb"\u00"


def is_beyond(column: pa.ChunkedArray) -> bool:
    """Whether pyarrow let a number through that its column cannot hold.

    It makes infinity of a float that is too large, and checks the digits of a decimal before it
    moves the point.
    """
    if pa.types.is_floating(column.type):
        return bool(pc.any(pc.is_inf(column)).as_py())
    if pa.types.is_struct(column.type):
        return any(is_beyond(part) for part in column.flatten())
    if pa.types.is_list(column.type):
        return is_beyond(pa.chunked_array([pc.list_flatten(column)]))
    if not pa.types.is_decimal(column.type):
        return False
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return True
    return False


def may_be_beyond(kind: pa.DataType) -> bool:
    """Whether :func:`is_beyond` can be true of a column of this type."""
    return bool(pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_nested(kind))


def has_decimals(kind: pa.DataType) -> bool:
    """Whether a type is a decimal, or holds one."""
    if pa.types.is_nested(kind):
        return any(has_decimals(kind.field(index).type) for index in range(kind.num_fields))
    return bool(pa.types.is_decimal(kind))


def most_places(kinds: Iterable[pa.DataType]) -> int:
    """The most places behind the point that a decimal among the types has, or in them; 0: none."""
    places = [0]
    for kind in kinds:
        if pa.types.is_nested(kind):
            places.append(most_places(kind.field(index).type for index in range(kind.num_fields)))
        elif pa.types.is_decimal(kind):
            places.append(kind.scale)
    return max(places)


def room_before_point(scale: int) -> int:
    """How many digits may stand before the point of a decimal with ``scale`` places behind it.

    Of a number with more of them pyarrow multiplies beyond 128 bits, and what comes out is mostly
    another number that fits the column.
    """
    return MOST_DIGITS - scale


def misleading_numbers(data: bytes, scale: int) -> Iterator[int]:
    """Where values of JSON stand that pyarrow, as decimals, may get wrong without a word.

    It reads beyond its own memory on 1e-999999999, and wraps around where digits are more than 38,
    be it with the places of the column or by an exponent. A decimal may also be text, and that may
    be spelled by escapes: 1\\u0065-999999999.
    """
    if not _may_hold_misleading(data, room_before_point(scale)):
        return
    for found in _misleading_pattern(room_before_point(scale)).finditer(data):
        yield found.start()


def _may_hold_misleading(data: bytes, room: int) -> bool:
    """A look that costs little: most blocks have nothing of the kind."""
    alike = data.translate(_DIGITS_ALIKE)
    return (
        b"0" * (room + 1) in alike
        or _has_exponents(alike)
        or (b"\\" in data and _ESCAPED in data)  # one byte is found ten times as quickly
    )


def _has_exponents(alike: bytes) -> bool:
    """``b"0e" in alike``, in a quarter of the time that takes where most bytes are digits."""
    if not alike:
        return False
    text = pa.Array.from_buffers(pa.uint8(), len(alike), [None, pa.py_buffer(alike)])
    digits, marks = pc.equal(text[:-1], _DIGIT), pc.equal(text[1:], _MARK)
    return bool(pc.any(pc.and_(digits, marks)).as_py())


@cache
def _misleading_pattern(room: int) -> re.Pattern[bytes]:
    """Too many digits before the point or in all, an exponent, or an escape that may be either."""
    told = rb"\d{%d}|[\d.]{%d}|[\d.]+[eE]|[\d.]*\\u00[2346]" % (room + 1, MOST_DIGITS + 1)
    return re.compile(rb"[:,\[]\s*\"?[+-]?(?:%b)" % told)
