"""Column statistics in the words of each table format."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from calque.loader.model.data_file import ColumnStats, DataFile

PREFIX = 32
"""Characters kept of a string bound."""
_LAST = "\U0010ffff"
_quoted = json.JSONEncoder(ensure_ascii=False).encode
_LAST_MILLISECOND = datetime.max.replace(microsecond=999_000)


def delta_stats(file: DataFile, schema: pa.Schema) -> str:
    """The ``stats`` of a Delta add action: bounds of every column that is filtered by, or none.

    Readers on deltalake's dataset take a bound that is missing for NULL, and pass over the file
    whenever its column is filtered by; what has no statistics but its count is always read.
    """
    bounds: dict[str, tuple[str, str]] = {}
    nulls: dict[str, str] = {}
    for field in schema:
        column = file.columns.get(field.name)
        if pa.types.is_struct(field.type):
            if column is None or column.nulls:  # they are passed over as if it had none
                return _object({"numRecords": str(file.rows)})
            continue
        if pa.types.is_nested(field.type) or field.name in file.partition:
            continue
        if column is None:
            return _object({"numRecords": str(file.rows)})
        nulls[field.name] = str(column.nulls)
        if column.nulls == file.rows or _is_binary(field.type):
            continue
        found = _delta_bounds(column)
        if found is None:
            return _object({"numRecords": str(file.rows)})
        bounds[field.name] = (_number(found[0]), _number(found[1]))
    return _object(
        {
            "numRecords": str(file.rows),
            "minValues": _object({name: low for name, (low, _) in bounds.items()}),
            "maxValues": _object({name: high for name, (_, high) in bounds.items()}),
            "nullCount": _object(nulls),
        }
    )


def _is_binary(kind: pa.DataType) -> bool:
    """Bytes, which JSON cannot spell: readers look for no bounds of theirs."""
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind))


def _object(members: Mapping[str, str]) -> str:
    """A JSON object of members that are JSON already."""
    return "{" + ",".join([f"{_quoted(name)}:{text}" for name, text in members.items()]) + "}"


def _number(bound: Any) -> str:
    """A bound as JSON; a decimal with all its digits, which readers take as they are."""
    if isinstance(bound, str):
        return _quoted(bound)
    if isinstance(bound, bool):
        return "true" if bound else "false"
    if isinstance(bound, float) and math.isinf(bound):
        return '"Infinity"' if bound > 0 else '"-Infinity"'  # as Spark writes and readers take it
    return f"{bound:f}" if isinstance(bound, Decimal) else repr(bound)


def _delta_bounds(column: ColumnStats) -> tuple[Any, Any] | None:
    low, high = column.low, column.high
    if low is None or high is None or isinstance(low, bytes):
        return None
    if isinstance(low, float):
        return None if math.isnan(low) or math.isnan(high) else (low, high)
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
