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
_LAST = "\U0010ffff"
_quoted = json.JSONEncoder(ensure_ascii=False).encode
_LAST_MILLISECOND = datetime.max.replace(microsecond=999_000)


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
    return _object(
        {
            "numRecords": str(file.rows),
            "minValues": _object({name: _number(value) for name, value in low.items()}),
            "maxValues": _object({name: _number(value) for name, value in high.items()}),
            "nullCount": _object({name: str(count) for name, count in nulls.items()}),
        }
    )


def _object(members: Mapping[str, str]) -> str:
    """A JSON object of members that are JSON already."""
    return "{" + ",".join([f"{_quoted(name)}:{text}" for name, text in members.items()]) + "}"


def _number(bound: Any) -> str:
    """A bound as JSON; a decimal with all its digits, which readers take as they are."""
    if isinstance(bound, str):
        return _quoted(bound)
    if isinstance(bound, bool):
        return "true" if bound else "false"
    return f"{bound:f}" if isinstance(bound, Decimal) else repr(bound)


def _delta_bounds(column: ColumnStats) -> tuple[Any, Any] | None:
    low, high = column.low, column.high
    if low is None or high is None or isinstance(low, bytes):
        return None
    if isinstance(low, float):
        return (low, high) if math.isfinite(low) and math.isfinite(high) else None
    if isinstance(low, datetime):
        return _stamp(low, up=False), _stamp(high, up=True)
    if isinstance(low, date):
        return low.isoformat(), high.isoformat()
    if isinstance(low, str):
        return low[:PREFIX], text_above(high)
    return (low, high) if isinstance(low, int | Decimal) else None


def _stamp(moment: datetime, *, up: bool) -> str:
    """Milliseconds, as every reader expects; an upper bound is rounded up."""
    moment = moment if moment.tzinfo is None else moment.astimezone(UTC)
    rest = timedelta(microseconds=moment.microsecond % 1000)
    precision = "milliseconds"
    if not up:
        moment -= rest
    elif rest and moment - rest == _LAST_MILLISECOND.replace(tzinfo=moment.tzinfo):
        precision = "microseconds"  # none follows
    elif rest:
        moment += timedelta(milliseconds=1) - rest
    return moment.isoformat(timespec=precision).replace("+00:00", "Z")


def text_above(text: str) -> str:
    """A string that is not below ``text``: a short one, if there is one."""
    if len(text) <= PREFIX:
        return text
    for index in range(PREFIX - 1, -1, -1):
        if text[index] < _LAST:
            following = ord(text[index]) + 1
            return text[:index] + chr(0xE000 if following == 0xD800 else following)  # no halves
    return text
