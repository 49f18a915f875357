"""Which partition a row belongs to, and how a partition is spelled."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from calque.errors import DataError

Key = tuple[str | None, ...]
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_ROW = "__row"
_NAME_MOST = 255
_PATH_MOST = 600
"""Bytes of a name, and of a path of 1024: the root and the file's name need theirs."""
_HASHED = 16


def split_rows(
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
    for group in _group_rows(groups):
        key = tuple(value_text(group[name], keeps_empty=keeps_empty) for name in columns)
        rows = pa.array(group[f"{_ROW}_list"], pa.int64())
        yield key, batch if len(groups) == 1 else batch.take(rows)


def _group_rows(groups: pa.Table) -> list[dict[str, Any]]:
    try:
        found: list[dict[str, Any]] = groups.to_pylist()
    except (ValueError, OverflowError) as error:
        raise DataError(
            f"a row cannot be put into a partition: its date or time is beyond all calendars "
            f"({error})",
            hint="Partition by another column, or mend the value.",
        ) from error
    return found


def value_text(value: Any, *, keeps_empty: bool) -> str | None:
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
    if isinstance(value, Decimal):
        return f"{value:f}"  # not every reader knows 1E-7
    return str(value)


def folder_of(columns: Sequence[str], key: Key) -> str:
    """``name=value/`` for each partition column, as Hive spells it.

    The table's log has the values; the folder is for people, and for readers that believe folders
    rather than the log (polars is one). No file system and no object store takes names of any
    length: where one is too long there is a hash, which cannot be taken for a value.
    """
    parts = [
        f"{quote(name, safe=' ')}={NO_VALUE if value is None else quote(value, safe=' ')}"
        for name, value in zip(columns, key, strict=True)
    ]
    parts = [_hash(part) if len(part) > _NAME_MOST else part for part in parts]
    for part in sorted(parts, key=len, reverse=True):
        if len("/".join(parts)) > _PATH_MOST:
            parts[parts.index(part)] = _hash(part)
    return "".join(f"{part}/" for part in parts)


def _hash(part: str) -> str:
    return f"~{hashlib.sha256(part.encode()).hexdigest()[:_HASHED]}"
