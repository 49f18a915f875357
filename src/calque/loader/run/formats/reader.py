"""What a reader is asked for and what it gives: the seam of all formats."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from calque.loader.model.file_formats import FormatOptions
from calque.loader.model.outcome import RowError
from calque.loader.model.plan import ColumnMatch, WritePlan

MOST_KEPT = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSpec:
    """How staged files are read: the format, and the columns that files fill."""

    format: FormatOptions
    schema: pa.Schema
    match: ColumnMatch = "position"
    columns: tuple[str, ...] = ()
    rescue: str | None = None
    keep_errors: int = 1000
    learned: set[str] = field(default_factory=set, compare=False)
    """Columns in which a quick parser has failed before: readers of one task tell each other."""
    kept: dict[object, Any] = field(default_factory=dict, compare=False)
    """What the reader of a task's next file need not make again. A thousand small files of one
    task are alike, and what is made for each would cost as much as parsing it."""

    def keep(self, key: object, made: Any) -> None:
        """Have something at hand in ``kept``; of files that are all different only the last."""
        if len(self.kept) >= MOST_KEPT:
            self.kept.clear()
        self.kept[key] = made

    @classmethod
    def of(cls, plan: WritePlan) -> ReadSpec:
        """The columns of the target less those that are filled from elsewhere."""
        elsewhere = {column.column for column in plan.metadata_columns}
        elsewhere |= {plan.rescue_column} if plan.rescue_column else set()
        fields = [field for field in plan.target.schema if field.name not in elsewhere]
        return cls(
            format=plan.format,
            schema=pa.schema(fields),
            match=plan.match,
            columns=plan.columns,
            rescue=plan.rescue_column,
            keep_errors=plan.keep_errors,
        )


@dataclass(frozen=True, slots=True)
class ParsedBatch:
    """Rows of a piece in order, the records that gave none, and why.

    ``first_record`` counts from 1 within the piece; ``rejected`` are positions among the
    ``records`` of this batch. ``errors`` has one entry for each rejected record, as long as any
    are kept.
    """

    rows: pa.RecordBatch
    first_record: int
    records: int
    rejected: tuple[int, ...] = ()
    errors: tuple[RowError, ...] = ()

    def record_numbers(self) -> pa.Array:
        """The record number of each row."""
        bad = set(self.rejected)
        numbers = range(self.first_record, self.first_record + self.records)
        if not bad:
            return pa.array(numbers, pa.int64())
        return pa.array([number for at, number in enumerate(numbers) if at not in bad], pa.int64())


@dataclass(slots=True)
class Extent:
    """What a reader of a piece has passed: for joining pieces of one file."""

    start: int = 0
    """Where its first record begins; for the first piece 0."""
    end: int = 0
    """Where its last record ends."""
    lines: int = 0
    records: int = 0


class Reader(Protocol):
    """A format's reader: one for each piece."""

    extent: Extent

    def read(self) -> Iterator[ParsedBatch]:
        """The rows of the piece. Raises FileRefused where the file as a whole cannot be read."""


def shift_error(error: RowError, lines: int, records: int) -> RowError:
    """An error of a later piece with its position in the whole file."""
    return error._replace(
        line=error.line + lines if error.line else 0, record=error.record + records
    )
