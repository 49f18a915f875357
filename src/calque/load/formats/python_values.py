"""Columns of Python values (JSON, Avro, XML) as strict as columns of text."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import pyarrow as pa

from calque.load.formats.cells import Cells, Refusal
from calque.load.formats.reject import Code


class Unfit(Exception):
    """A value that does not become the column's type."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def column_of(values: Sequence[Any], target: pa.DataType) -> Cells:
    """Values as a column; where text must still be cast, as a column of text."""
    convert, kind = _converter(target)
    taken: list[Any] = []
    refused: list[Refusal] = []
    for row, value in enumerate(values):
        if value is None:
            taken.append(None)
            continue
        try:
            taken.append(convert(value))
        except Unfit as error:
            taken.append(None)
            refused.append(Refusal(row, as_text(value), error.code, error.message))
    return Cells(pa.array(taken, kind), tuple(refused))


def as_text(value: Any) -> str:
    """A value as text: itself if it is text, else as JSON spells it."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Decimal):
        return str(value)
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    return json.dumps(value, default=as_text, ensure_ascii=False)


def plain(value: Any) -> Any:
    """A value as JSON can spell it without losing anything: numbers exactly, or as text."""
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, Decimal) and value.is_finite() and Decimal(repr(float(value))) == value:
        return float(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return as_text(value)


def _converter(target: pa.DataType) -> tuple[Callable[[Any], Any], pa.DataType]:
    if pa.types.is_integer(target):
        return _integer(target), target
    if pa.types.is_floating(target):
        return _float(target), target
    if pa.types.is_decimal(target):
        return _decimal(target), target
    if pa.types.is_boolean(target):
        return _boolean, target
    if pa.types.is_string(target) or pa.types.is_large_string(target):
        return as_text, target
    if pa.types.is_temporal(target):
        return _moment(target), pa.string()
    return _other(target), target


def _integer(target: pa.DataType) -> Callable[[Any], int]:
    signed = pa.types.is_signed_integer(target)
    low = -(2 ** (target.bit_width - 1)) if signed else 0
    high = 2 ** (target.bit_width - (1 if signed else 0))

    def convert(value: Any) -> int:
        if isinstance(value, Decimal) and value != value.to_integral_value():
            raise Unfit(Code.PRECISION_LOSS, f"has more decimal places than {target} keeps")
        if isinstance(value, bool) or not isinstance(value, int):
            raise Unfit(Code.INVALID_VALUE, f"is no {target}")
        if not low <= value < high:
            raise Unfit(Code.OUT_OF_RANGE, f"is beyond the range of {target}")
        return value

    return convert


def _float(target: pa.DataType) -> Callable[[Any], float]:
    def convert(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise Unfit(Code.INVALID_VALUE, f"is no {target}")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isinf(number) and not _is_infinite(value):
            raise Unfit(Code.OUT_OF_RANGE, f"is beyond the range of {target}")
        return number

    return convert


def _is_infinite(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, Decimal) and value.is_infinite())


def _decimal(target: pa.DataType) -> Callable[[Any], Decimal]:
    def convert(value: Any) -> Decimal:
        if isinstance(value, bool) or not isinstance(value, int | str | Decimal):
            raise Unfit(Code.INVALID_VALUE, f"is no {target}")
        try:
            number = Decimal(value)
        except ArithmeticError:
            raise Unfit(Code.INVALID_VALUE, f"is no {target}") from None
        if not number.is_finite():
            raise Unfit(Code.INVALID_VALUE, f"is no {target}")
        _, digits, exponent = number.normalize().as_tuple()
        assert isinstance(exponent, int)
        if number and -exponent > target.scale:
            raise Unfit(Code.PRECISION_LOSS, f"has more decimal places than {target} keeps")
        if number and len(digits) + exponent > target.precision - target.scale:
            raise Unfit(Code.OUT_OF_RANGE, f"is beyond the range of {target}")
        return number

    return convert


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise Unfit(Code.INVALID_VALUE, "is no bool")


def _moment(target: pa.DataType) -> Callable[[Any], str]:
    def convert(value: Any) -> str:
        if isinstance(value, str):
            return value
        if isinstance(value, date | datetime | time):
            return value.isoformat()
        raise Unfit(Code.INVALID_VALUE, f"is no {target}")

    return convert


def _other(target: pa.DataType) -> Callable[[Any], Any]:
    def convert(value: Any) -> Any:
        try:
            pa.array([value], target)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            raise Unfit(Code.INVALID_VALUE, f"is no {target}") from None
        return value

    return convert
