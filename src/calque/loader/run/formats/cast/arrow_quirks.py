"""Numbers that pyarrow gets wrong without a word: how they are found, before or after it read."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

_DIGITS_ALIKE = bytes.maketrans(b"123456789.E", b"0000000000e")


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


def misleading_numbers(data: bytes) -> Iterator[int]:
    """Where numbers stand that pyarrow, as decimals, may get wrong without a word.

    It reads beyond its own memory on 1e-999999999, and wraps around where digits are more than 38.
    """
    alike = data.translate(_DIGITS_ALIKE)
    for mark in (b"0" * 39, b"0e-"):
        at = alike.find(mark)
        while at >= 0:
            yield at
            at = alike.find(mark, at + len(mark))
