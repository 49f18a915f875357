"""Column statistics in the words of each table format."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from calque.load.manifest import ColumnStats, DataFile

PREFIX = 32
"""Characters kept of a string bound."""


def delta_stats(file: DataFile, schema: pa.Schema) -> str:
    """The ``stats`` of a Delta add action: counts always, bounds where they can be exact."""
    names = set(schema.names)
    low: dict[str, Any] = {}
    high: dict[str, Any] = {}
    nulls: dict[str, int] = {}
    for name, column in file.columns.items():
        if name not in names:
            continue
        nulls[name] = column.nulls
        bounds = _delta_bounds(column)
        if bounds is not None:
            low[name], high[name] = bounds
    stats: Mapping[str, Any] = {
        "numRecords": file.rows,
        "minValues": low,
        "maxValues": high,
        "nullCount": nulls,
    }
    return json.dumps(stats, ensure_ascii=False, separators=(",", ":"))


def _delta_bounds(column: ColumnStats) -> tuple[Any, Any] | None:
    low, high = column.low, column.high
    if low is None or high is None or isinstance(low, bool | bytes):
        return None
    if isinstance(low, float):
        return (low, high) if math.isfinite(low) and math.isfinite(high) else None
    if isinstance(low, Decimal):
        return _decimal_bounds(low, high)
    if isinstance(low, datetime):
        return _stamp_bounds(low, high)
    if isinstance(low, date):
        return low.isoformat(), high.isoformat()
    if isinstance(low, str):
        return _text_bounds(low, high)
    return (low, high) if isinstance(low, int) else None


def _decimal_bounds(low: Decimal, high: Decimal) -> tuple[Any, Any] | None:
    """As JSON numbers, only where a reader's float holds them exactly."""
    if Decimal(float(low)) != low or Decimal(float(high)) != high:
        return None
    return float(low), float(high)


def _stamp_bounds(low: datetime, high: datetime) -> tuple[str, str] | None:
    try:
        return _stamp(low, up=False), _stamp(high, up=True)
    except OverflowError:  # no millisecond follows the last one of the year 9999
        return None


def _stamp(moment: datetime, *, up: bool) -> str:
    """Milliseconds, as every reader expects; an upper bound is rounded up."""
    rest = timedelta(microseconds=moment.microsecond % 1000)
    moment = moment - rest
    if up and rest:
        moment += timedelta(milliseconds=1)
    if moment.tzinfo is None:
        return moment.isoformat(timespec="milliseconds")
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _text_bounds(low: str, high: str) -> tuple[str, str] | None:
    top = text_above(high)
    return None if top is None else (low[:PREFIX], top)


def text_above(text: str) -> str | None:
    """A short string that is not below ``text``; None where there is none."""
    if len(text) <= PREFIX:
        return text
    for index in range(PREFIX - 1, -1, -1):
        following = ord(text[index]) + 1
        if following <= 0x10FFFF and not 0xD800 <= following <= 0xDFFF:
            return text[:index] + chr(following)
    return None
