"""Numbers as a sample of a file shows them, until it is settled which type keeps them all.

A type alone does not tell enough: ``9007199254740993`` and ``0.5`` are both kept by a decimal and
not both by a double, while ``7`` and ``0.5`` are. So inference carries how many digits it has seen,
as an Arrow type of our own that never reaches a table.
"""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache

import pyarrow as pa

from calque.loader.run.formats.cast.python_values import decimal_places

WHOLE_IN_DOUBLE = 2**53
"""Whole numbers up to here are doubles, each and every one."""
_MOST_DIGITS = 38
_INTEGER_DIGITS = {8: 3, 16: 5, 32: 10, 64: 19}


class Numeral(pa.ExtensionType):  # type: ignore[misc]
    """Numbers of at most ``whole`` digits before the point and ``scale`` behind it.

    ``integral``: spelled without a point, and all of them in 64 bits. ``in_double``: a double
    comes back as the number that was written.
    """

    def __init__(self, whole: int, scale: int, integral: bool, in_double: bool) -> None:
        self.whole = whole
        self.scale = scale
        self.integral = integral
        self.in_double = in_double
        # Arrow compares such types by their names alone.
        super().__init__(pa.string(), f"numeral({whole}, {scale}, {integral}, {in_double})")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    def merge(self, other: Numeral) -> Numeral:
        """The numbers of both."""
        return numeral(
            max(self.whole, other.whole),
            max(self.scale, other.scale),
            self.integral and other.integral,
            self.in_double and other.in_double,
        )

    @property
    def narrowest_type(self) -> pa.DataType:
        """The narrowest type that keeps every one: integer, double, decimal, then text."""
        if self.integral:
            return pa.int64()
        if self.in_double:
            return pa.float64()
        digits = self.whole + self.scale
        return pa.decimal128(max(digits, 1), self.scale) if digits <= _MOST_DIGITS else pa.string()


@lru_cache(4096)
def numeral(whole: int, scale: int, integral: bool, in_double: bool) -> Numeral:
    """One object for equal numerals: a sample has tens of thousands."""
    return Numeral(whole, scale, integral, in_double)


def numeral_of(number: int | Decimal) -> Numeral:
    """What one finite number asks of a type."""
    if isinstance(number, int):
        small = -(2**63) <= number < 2**63
        return numeral(len(str(abs(number))), 0, small, _comes_back(Decimal(number)))
    whole = max(0, number.adjusted() + 1) if number else 0
    return numeral(whole, max(0, decimal_places(number)), False, _comes_back(number))


def numeral_in(kind: pa.DataType) -> Numeral | None:
    """What any number of an exact type asks of another; None for what is no exact number."""
    if isinstance(kind, Numeral):
        return kind
    if pa.types.is_integer(kind):
        wide = kind == pa.uint64()
        return numeral(
            20 if wide else _INTEGER_DIGITS[kind.bit_width], 0, not wide, kind.bit_width <= 32
        )
    if pa.types.is_decimal(kind):
        return numeral(kind.precision - kind.scale, kind.scale, False, False)
    return None


def _comes_back(number: Decimal) -> bool:
    """Whether a double is this number, or is spelled as this number."""
    try:
        near = float(number)
    except OverflowError:
        return False
    return Decimal(near) == number or Decimal(repr(near)) == number
