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

from calque.loader.request.type_names import text_of_type
from calque.loader.run.formats.cast.nested import Convert, UnfitValue, nested_converter
from calque.loader.run.formats.cast.result import CastResult, RefusedCell
from calque.loader.run.formats.refusal import Code

_WIDE = Context(prec=100)
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,9})?")


def column_of(values: Sequence[Any], target: pa.DataType) -> CastResult:
    """Values as a column; where text must still be cast, as a column of text."""
    # A moment is spelled out, since only the column's own cast knows the format and the zone.
    temporal = pa.types.is_temporal(target)
    convert = _moment_speller(target) if temporal else converter_for(target)
    taken: list[Any] = []
    refused: list[RefusedCell] = []
    for row, value in enumerate(values):
        if value is None:
            taken.append(None)
            continue
        try:
            taken.append(convert(value))
        except UnfitValue as error:
            taken.append(None)
            refused.append(RefusedCell(row, _show(value), error.code, error.message))
        except RecursionError:
            taken.append(None)
            refused.append(RefusedCell(row, None, Code.MALFORMED, "is nested too deeply"))
    return CastResult(pa.array(taken, pa.string() if temporal else target), tuple(refused))


def converter_for(target: pa.DataType) -> Convert:
    """What makes one value of a type, or raises UnfitValue: nothing is rounded, cut or guessed."""
    if pa.types.is_integer(target):
        return _integer_converter(target)
    if pa.types.is_floating(target):
        return _float_converter(target)
    if pa.types.is_decimal(target):
        return _decimal_converter(target)
    if pa.types.is_boolean(target):
        return _convert_boolean
    if pa.types.is_string(target) or pa.types.is_large_string(target):
        return _convert_text
    if pa.types.is_temporal(target):
        return _moment_converter(target)
    if pa.types.is_nested(target):
        return nested_converter(target, converter_for)
    return _other_converter(target)


def as_text(value: Any) -> str:
    """A value as text: itself if it is text, else as JSON spells it."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    if isinstance(value, bool | int | float | list | dict):
        return _spell_json(value)
    return str(value)


def json_value(value: Any) -> Any:
    """A value as JSON can spell it without losing anything: numbers exactly, or as text."""
    if isinstance(value, dict):
        return {str(key): json_value(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(one) for one in value]
    if isinstance(value, Decimal) and value.is_finite() and Decimal(repr(float(value))) == value:
        return float(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return as_text(value)


def _spell_json(value: Any) -> str:
    """JSON in which exact decimals stay the numbers they are."""
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{_spell_json(str(k))}: {_spell_json(v)}" for k, v in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(_spell_json, value)) + "]"
    if isinstance(value, Decimal):
        return str(value)
    json_value = value is None or isinstance(value, str | bool | int | float)
    return json.dumps(value if json_value else as_text(value), ensure_ascii=False)


def _show(value: Any) -> str | None:
    try:
        return as_text(value).encode("utf-8", "backslashreplace").decode()
    except RecursionError:
        return None


def _convert_text(value: Any) -> str:
    if isinstance(value, list | dict | Decimal) and _is_no_json(value):
        raise UnfitValue(Code.INVALID_VALUE, "holds NaN or Infinity, which is no JSON")
    text = as_text(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UnfitValue(Code.INVALID_ENCODING, "holds half of a surrogate pair") from None
    return text


def _is_no_json(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(_is_no_json, value))
    if isinstance(value, dict):
        return any(map(_is_no_json, value.values()))
    if isinstance(value, Decimal):
        return not value.is_finite()
    return isinstance(value, float) and not math.isfinite(value)


def _integer_converter(target: pa.DataType) -> Callable[[Any], int]:
    signed = pa.types.is_signed_integer(target)
    low = -(2 ** (target.bit_width - 1)) if signed else 0
    high = 2 ** (target.bit_width - (1 if signed else 0))

    def convert(value: Any) -> int:
        if isinstance(value, Decimal) and value.is_finite() and decimal_places(value) > 0:
            why = f"has more decimal places than {text_of_type(target)} keeps"
            raise UnfitValue(Code.PRECISION_LOSS, why)
        if isinstance(value, bool) or not isinstance(value, int):
            raise UnfitValue(Code.INVALID_VALUE, f"is no {text_of_type(target)}")
        if not low <= value < high:
            raise UnfitValue(Code.OUT_OF_RANGE, f"is beyond the range of {text_of_type(target)}")
        return value

    return convert


def decimal_places(number: Decimal) -> int:
    """Decimal places that are not zero; without arithmetic, which huge exponents overflow."""
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int), "the number is finite"
    last = next((at for at, digit in enumerate(reversed(digits)) if digit), None)
    return 0 if last is None else -(exponent + last)


def _float_converter(target: pa.DataType) -> Callable[[Any], float]:
    narrow = {16: "<e", 32: "<f"}.get(target.bit_width)

    def convert(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
            raise UnfitValue(Code.INVALID_VALUE, f"is no {text_of_type(target)}")
        try:
            number = float(value)
            if narrow is not None:
                struct.pack(narrow, number)
        except OverflowError:
            number = math.inf
        if math.isinf(number) and not _is_infinite(value):
            raise UnfitValue(Code.OUT_OF_RANGE, f"is beyond the range of {text_of_type(target)}")
        return number

    return convert


def _is_infinite(value: Any) -> bool:
    return (isinstance(value, float) and math.isinf(value)) or (
        isinstance(value, Decimal) and value.is_infinite()
    )


def _decimal_converter(target: pa.DataType) -> Callable[[Any], Decimal]:
    unit = Decimal(1).scaleb(-target.scale)

    def convert(value: Any) -> Decimal:
        if isinstance(value, bool) or not isinstance(value, int | str | Decimal):
            raise UnfitValue(Code.INVALID_VALUE, f"is no {text_of_type(target)}")
        if isinstance(value, str) and not _NUMBER.fullmatch(value):
            raise UnfitValue(Code.INVALID_VALUE, f"is no {text_of_type(target)}")
        number = Decimal(value)
        if not number.is_finite():
            raise UnfitValue(Code.INVALID_VALUE, f"is no {text_of_type(target)}")
        if decimal_places(number) > target.scale:
            why = f"has more decimal places than {text_of_type(target)} keeps"
            raise UnfitValue(Code.PRECISION_LOSS, why)
        if number and number.adjusted() >= target.precision - target.scale:
            raise UnfitValue(Code.OUT_OF_RANGE, f"is beyond the range of {text_of_type(target)}")
        return number.quantize(unit, context=_WIDE)  # pyarrow counts trailing zeros as digits

    return convert


def _convert_boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise UnfitValue(Code.INVALID_VALUE, "is no bool")


def _moment_speller(target: pa.DataType) -> Callable[[Any], str]:
    def convert(value: Any) -> str:
        if isinstance(value, str):
            return _convert_text(value)
        if isinstance(value, date | datetime | time):
            return value.isoformat()
        raise UnfitValue(Code.INVALID_VALUE, f"is no {text_of_type(target)}")

    return convert


def _moment_converter(target: pa.DataType) -> Convert:
    """Inside nested values, where no format of the options applies: ISO 8601."""

    def convert(value: Any) -> Any:
        try:
            return pa.scalar(_moment_speller(target)(value)).cast(target).as_py()
        except (pa.ArrowException, ValueError, OverflowError):
            raise UnfitValue(Code.INVALID_VALUE, f"is no {text_of_type(target)}") from None

    return convert


def _other_converter(target: pa.DataType) -> Convert:
    def convert(value: Any) -> Any:
        try:
            pa.array([value], target)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            raise UnfitValue(Code.INVALID_VALUE, f"is no {text_of_type(target)}") from None
        return value

    return convert
