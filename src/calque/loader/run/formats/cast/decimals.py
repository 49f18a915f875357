"""Decimals by way of doubles: exact as long as no number has more than fifteen digits.

Arrow reads a double more quickly than a decimal, and without its traps (``arrow_quirks``). Two
decimals of at most fifteen significant digits never share a double, but for those so small that
they become zero. So the decimal with the column's places that is nearest to a double is what was
written, if it gives that double again; else what was written has more places than the column.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_DIGITS_ALIKE = bytes.maketrans(b"123456789.E", b"0000000000e")
_STEP, _SEEN = 4, b"0000"
_LARGEST = 10.0**15
_MOST_PLACES = 15


def has_long_numbers(data: bytes) -> bool:
    """Whether sixteen digits may stand in a row anywhere; in doubt, that they do.

    Every fourth byte is looked at: sixteen in a row show four times.
    """
    return _SEEN in data[::_STEP].translate(_DIGITS_ALIKE)


def decimals_of_doubles(values: pa.Array, target: pa.DataType, text: bytes) -> pa.Array | None:
    """Numbers of at most fifteen digits, which were read as doubles from ``text``, as ``target``.

    None where one of them does not fit it unchanged.
    """
    if not 0 <= target.scale <= _MOST_PLACES:
        return None
    unit = pa.scalar(10.0**target.scale)
    whole = pc.round(pc.multiply(values, unit))
    same = pc.equal(pc.divide(whole, unit), values)
    below = pc.less(pc.abs(whole), pa.scalar(min(_LARGEST, 10.0**target.precision)))
    if pc.all(pc.and_(same, below)).as_py() is False:
        return None
    counts = pc.cast(whole, pa.int64())
    if pc.any(pc.equal(counts, 0)).as_py() and _may_vanish(text):
        return None
    digits = pc.cast(counts, pa.decimal128(19, 0))
    # The same digits with the point moved: nothing is computed.
    kind = pa.decimal128(target.precision, target.scale)
    return pc.cast(pa.Array.from_buffers(kind, len(digits), digits.buffers()), target)


def _may_vanish(text: bytes) -> bool:
    """Whether there may be a number that is too small for a double: 1e-400."""
    return b"0e-000" in text.translate(_DIGITS_ALIKE)
