"""Columns of Python values (JSON, Avro) as strict as columns of text."""

from __future__ import annotations

import base64
import json
import math
import re
import struct
from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from decimal import Context, Decimal
from typing import Any

import pyarrow as pa

from calque.loader.run.formats.cast.nested import Convert, Unfit, nested
from calque.loader.run.formats.cast.refused_cells import Cells, Refusal
from calque.loader.run.formats.reject import Code

_ROOM = Context(prec=100)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,9})?")


def column_of(values: Sequence[Any], target: pa.DataType) -> Cells:
    """Values as a column; where text must still be cast, as a column of text."""
    # A moment is spelled out, since only the column's own cast knows the format and the zone.
    temporal = pa.types.is_temporal(target)
    convert = _spelled(target) if temporal else converter(target)
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
            refused.append(Refusal(row, _shown(value), error.code, error.message))
        except RecursionError:
            taken.append(None)
            refused.append(Refusal(row, None, Code.MALFORMED, "is nested too deeply"))
    return Cells(pa.array(taken, pa.string() if temporal else target), tuple(refused))


def converter(target: pa.DataType) -> Convert:
    """What makes one value of a type, or raises Unfit: nothing is rounded, cut or guessed."""
    if pa.types.is_integer(target):
        return _integer(target)
    if pa.types.is_floating(target):
        return _float(target)
    if pa.types.is_decimal(target):
        return _decimal(target)
    if pa.types.is_boolean(target):
        return _boolean
    if pa.types.is_string(target) or pa.types.is_large_string(target):
        return _text
    if pa.types.is_temporal(target):
        return _moment(target)
    if pa.types.is_nested(target):
        return nested(target, converter)
    return _other(target)


def as_text(value: Any) -> str:
    """A value as text: itself if it is text, else as JSON spells it."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    if isinstance(value, bool | int | float | list | dict):
        return _json(value)
    return str(value)


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


def _json(value: Any) -> str:
    """JSON in which exact decimals stay the numbers they are."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_json(str(k))}: {_json(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_json, value)) + "]"
    if isinstance(value, Decimal):
        return str(value)
    plain = value is None or isinstance(value, str | bool | int | float)
    return json.dumps(value if plain else as_text(value), ensure_ascii=False)


def _shown(value: Any) -> str | None:
    try:
        return as_text(value).encode("utf-8", "backslashreplace").decode()
    except RecursionError:
        return None


def _text(value: Any) -> str:
    if isinstance(value, list | dict | Decimal) and _is_no_json(value):
        raise Unfit(Code.INVALID_VALUE, "holds NaN or Infinity, which is no JSON")
    text = as_text(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Unfit(Code.INVALID_ENCODING, "holds half of a surrogate pair") from None
    return text


def _is_no_json(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_is_no_json, value))
    if isinstance(value, dict):
        return any(map(_is_no_json, value.values()))
    if isinstance(value, Decimal):
        return not value.is_finite()
    return isinstance(value, float) and not math.isfinite(value)


def _integer(target: pa.DataType) -> Callable[[Any], int]:
    signed = pa.types.is_signed_integer(target)
    low = -(2 ** (target.bit_width - 1)) if signed else 0
    high = 2 ** (target.bit_width - (1 if signed else 0))

    def convert(value: Any) -> int:
        if isinstance(value, Decimal) and value.is_finite() and decimal_places(value) > 0:
            raise Unfit(Code.PRECISION_LOSS, f"has more decimal places than {target} keeps")
        if isinstance(value, bool) or not isinstance(value, int):
            raise Unfit(Code.INVALID_VALUE, f"is no {target}")
        if not low <= value < high:
            raise Unfit(Code.OUT_OF_RANGE, f"is beyond the range of {target}")
        return value

    return convert


def decimal_places(number: Decimal) -> int:
    """Decimal places that are not zero; without arithmetic, which huge exponents overflow."""
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int), "the number is finite"
    last = next((at for at, digit in enumerate(reversed(digits)) if digit), None)
    return 0 if last is None else -(exponent + last)


def _float(target: pa.DataType) -> Callable[[Any], float]:
    narrow = {16: "<e", 32: "<f"}.get(target.bit_width)

    def convert(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise Unfit(Code.INVALID_VALUE, f"is no {target}")
        try:
            number = float(value)
            if narrow is not None:
                struct.pack(narrow, number)
        except OverflowError:
            number = math.inf
        if math.isinf(number) and not _is_infinite(value):
            raise Unfit(Code.OUT_OF_RANGE, f"is beyond the range of {target}")
        return number

    return convert


def _is_infinite(value: Any) -> bool:
    return (isinstance(value, float) and math.isinf(value)) or (
        isinstance(value, Decimal) and value.is_infinite()
    )


def _decimal(target: pa.DataType) -> Callable[[Any], Decimal]:
    unit = Decimal(1).scaleb(-target.scale)

    def convert(value: Any) -> Decimal:
        if isinstance(value, bool) or not isinstance(value, int | str | Decimal):
            raise Unfit(Code.INVALID_VALUE, f"is no {target}")
        if isinstance(value, str) and not _NUMBER.fullmatch(value):
            raise Unfit(Code.INVALID_VALUE, f"is no {target}")
        number = Decimal(value)
        if not number.is_finite():
            raise Unfit(Code.INVALID_VALUE, f"is no {target}")
        if decimal_places(number) > target.scale:
            raise Unfit(Code.PRECISION_LOSS, f"has more decimal places than {target} keeps")
        if number and number.adjusted() >= target.precision - target.scale:
            raise Unfit(Code.OUT_OF_RANGE, f"is beyond the range of {target}")
        return number.quantize(unit, context=_ROOM)  # pyarrow counts trailing zeros as digits

    return convert


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise Unfit(Code.INVALID_VALUE, "is no bool")


def _spelled(target: pa.DataType) -> Callable[[Any], str]:
    def convert(value: Any) -> str:
        if isinstance(value, str):
            return _text(value)
        if isinstance(value, date | datetime | time):
            return value.isoformat()
        raise Unfit(Code.INVALID_VALUE, f"is no {target}")

    return convert


def _moment(target: pa.DataType) -> Convert:
    """Inside nested values, where no format of the options applies: ISO 8601."""

    def convert(value: Any) -> Any:
        try:
            return pa.scalar(_spelled(target)(value)).cast(target).as_py()
        except (pa.ArrowException, ValueError, OverflowError):
            raise Unfit(Code.INVALID_VALUE, f"is no {target}") from None

    return convert


def _other(target: pa.DataType) -> Convert:
    def convert(value: Any) -> Any:
        try:
            pa.array([value], target)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            raise Unfit(Code.INVALID_VALUE, f"is no {target}") from None
        return value

    return convert
