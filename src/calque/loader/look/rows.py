"""Rows as people and programs read them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from html import escape
from math import isfinite
from typing import Any

import pyarrow as pa

from calque.loader.request.type_names import text_of_type


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """The rows as values that JSON has: times and decimals as text, bytes in base64."""
    return [{name: _plain(value) for name, value in row.items()} for row in _with_text_of(table)]


def cells_of(table: pa.Table) -> list[list[str]]:
    """The rows as text; NULL is told from the empty text."""
    return [
        ["NULL" if one is None else _text(one) for one in row.values()] for row in rows_of(table)
    ]


def html_of(title: str, notes: Iterable[str], schema: pa.Schema, rows: pa.Table) -> str:
    """A title, notes, and the rows under the names and types of their columns, for notebooks."""
    lines = [f"<p>{escape(one)}</p>" for one in (title, *notes)]
    head = "".join(
        f"<th>{escape(one.name)}<br><small>{escape(text_of_type(one.type))}</small></th>"
        for one in schema
    )
    body = "\n".join(f"<tr>{_html_cells(row)}</tr>" for row in cells_of(rows))
    return "\n".join(
        [*lines, f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>"]
    )


def _html_cells(row: Sequence[str]) -> str:
    return "".join(f"<td>{escape(cell)}</td>" for cell in row)


def _with_text_of(table: pa.Table) -> list[dict[str, Any]]:
    """As Python values; a time stamp beyond what Python's own can hold is text already."""
    try:
        return list(table.to_pylist())
    except (ValueError, OverflowError):
        columns = {name: _values_of(table.column(name)) for name in table.column_names}
        return [
            {name: values[row] for name, values in columns.items()} for row in range(len(table))
        ]


def _values_of(column: pa.ChunkedArray) -> list[Any]:
    try:
        return list(column.to_pylist())
    except (ValueError, OverflowError):
        if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
            return list(column.cast(pa.string()).to_pylist())
        return [str(one) for one in column]


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return b64encode(value).decode()
    if isinstance(value, datetime | date | time):
        return value.isoformat(sep=" ") if isinstance(value, datetime) else value.isoformat()
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, Decimal):
        return str(value)
    return value if isinstance(value, int | float | str | bool | None) else str(value)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
