"""A data file that a task wrote: its rows by source, and the bounds of its columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from calque.values.row_errors import RowError as RowError


@dataclass(frozen=True, slots=True)
class ColumnStats:
    """A column's statistics in one data file, as the Parquet footer gives them."""

    nulls: int
    low: Any = None
    high: Any = None


@dataclass(frozen=True, slots=True)
class Span:
    """Which rows of a data file came from which staged file."""

    location: str
    first_row: int
    rows: int


@dataclass(frozen=True, slots=True)
class DataFile:
    """A Parquet file under the table's root, ready to be committed."""

    path: str
    """Relative to the table's root, not encoded."""
    size: int
    rows: int
    partition: Mapping[str, str | None] = field(default_factory=dict)
    columns: Mapping[str, ColumnStats] = field(default_factory=dict)
    spans: tuple[Span, ...] = ()
