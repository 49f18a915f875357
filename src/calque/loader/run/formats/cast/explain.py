"""Why a text does not become a value of its column: a code, and words for people."""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal, InvalidOperation

import pyarrow as pa

from calque.loader.request.type_names import text_of_type
from calque.loader.run.formats.cast.python_values import decimal_places
from calque.loader.run.formats.cast.result import RefusedCell
from calque.loader.run.formats.refusal import Code

NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
"""A decimal number as people and databases spell it, with an exponent or without."""


def explain_cells(
    values: pa.Array, rows: list[int], target: pa.DataType, zone: str | None = None
) -> tuple[RefusedCell, ...]:
    """The cells of these rows, each with its reason; ``zone``: that of times without one."""
    texts = values.take(pa.array(rows, pa.int64())).to_pylist()
    return tuple(
        RefusedCell(row, text, *_reason(text, target, zone))
        for row, text in zip(rows, texts, strict=True)
    )


def _reason(text: str, target: pa.DataType, zone: str | None) -> tuple[Code, str]:
    text = text.strip()
    if not text:
        kind = text_of_type(target)
        return Code.EMPTY_FIELD, f"is empty, no {kind}; EMPTY_FIELD_AS_NULL = TRUE makes it NULL"
    if pa.types.is_integer(target) or pa.types.is_decimal(target):
        return _number_reason(text, target)
    if pa.types.is_timestamp(target) and _is_moment(text):
        return _zone_reason(text, target, zone)
    return Code.INVALID_VALUE, f"is no {text_of_type(target)}"


def _number_reason(text: str, target: pa.DataType) -> tuple[Code, str]:
    try:
        number = Decimal(text) if re.match(NUMBER, text) else None
    except InvalidOperation:  # an exponent beyond all measure
        number = None
    if number is None:
        return Code.INVALID_VALUE, f"is no {text_of_type(target)}"
    scale = target.scale if pa.types.is_decimal(target) else 0
    if decimal_places(number) > scale:
        return Code.PRECISION_LOSS, f"has more decimal places than {text_of_type(target)} keeps"
    if pa.types.is_integer(target) and ("." in text or "e" in text.lower() or text[0] == "+"):
        return Code.INVALID_VALUE, f"is not spelled as {text_of_type(target)}"
    return Code.OUT_OF_RANGE, f"is beyond the range of {text_of_type(target)}"


def _zone_reason(text: str, target: pa.DataType, zone: str | None) -> tuple[Code, str]:
    moment, kind = datetime.fromisoformat(text), text_of_type(target)
    if zone is not None and moment.tzinfo is None:
        return Code.INVALID_VALUE, f"is no one moment in {zone}: clocks skip or repeat that hour"
    if target.tz and moment.tzinfo is None:
        return Code.NO_TIME_ZONE, f"names no time zone, which {kind} needs: set TIME_ZONE"
    if not target.tz and moment.tzinfo is not None:
        return Code.UNEXPECTED_TIME_ZONE, f"names a time zone, which {kind} cannot keep"
    return Code.PRECISION_LOSS, f"is finer than {kind} keeps"


def _is_moment(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
