"""Which partition a row belongs to, and how a partition is spelled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from typing import Any
from urllib.parse import quote

import pyarrow as pa

Key = tuple[str | None, ...]
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_ROW = "__row"


def split(
    batch: pa.RecordBatch, columns: Sequence[str], *, keeps_empty: bool
) -> Iterator[tuple[Key, pa.RecordBatch]]:
    """The rows of each partition, in their order.

    ``keeps_empty``: the table tells the empty string from NULL, as Iceberg does and Delta cannot.
    """
    if not columns:
        yield (), batch
        return
    keys = pa.table({name: batch.column(name) for name in columns})
    keys = keys.append_column(_ROW, pa.array(range(batch.num_rows), pa.int64()))
    groups = keys.group_by(list(columns), use_threads=False).aggregate([(_ROW, "list")])
    for group in groups.to_pylist():
        key = tuple(spelled(group[name], keeps_empty=keeps_empty) for name in columns)
        rows = pa.array(group[f"{_ROW}_list"], pa.int64())
        yield key, batch if len(groups) == 1 else batch.take(rows)


def spelled(value: Any, *, keeps_empty: bool) -> str | None:
    """A partition value as text; None is NULL."""
    if value is None or (value == "" and not keeps_empty):
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        moment = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        return moment.isoformat(sep=" ", timespec="microseconds")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return str(value)


def folder(columns: Sequence[str], key: Key) -> str:
    """``name=value/`` for each partition column, as Hive spells it."""
    parts = (
        f"{quote(name, safe=' ')}={NO_VALUE if value is None else quote(value, safe=' ')}/"
        for name, value in zip(columns, key, strict=True)
    )
    return "".join(parts)
