"""The columns of delimited text: names from the header, types from a sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

import pyarrow as pa

from calque.loader.model.file_formats import CsvFormat
from calque.loader.run.formats.byte_buffer import ByteBuffer
from calque.loader.run.formats.cast.infer_types import infer_fields
from calque.loader.run.formats.cast.rules import CastRules
from calque.loader.run.formats.csv.reader import CsvReader
from calque.loader.run.formats.delimited.dialect import Dialect, text_of
from calque.loader.run.formats.reader import ReadSpec
from calque.loader.run.formats.staged_source import Source
from calque.values import MIB

_SAMPLE_BYTES = 1 * MIB
_SAMPLE_ROWS = 10_000
"""Whichever is less; a wrong guess costs refused rows and never a changed value."""


def infer_schema(source: Source, format: CsvFormat) -> pa.Schema:
    """Names and types by the first megabyte of a file."""
    names, rows = _sample(source, format)
    return infer_fields(names, rows, CastRules.of(format))


def raw_schema(source: Source, format: CsvFormat) -> pa.Schema:
    """The columns as they are spelled: text, all of them."""
    names, _ = _sample(source, format)
    return pa.schema([pa.field(name, pa.string()) for name in names])


def _sample(source: Source, format: CsvFormat) -> tuple[list[str], list[list[str | None]]]:
    reader = CsvReader(source, ReadSpec(format=format, schema=pa.schema([])))
    buffer, dialect, names = reader.prologue()
    if dialect is None:
        return names or [], []
    buffer.fill(_SAMPLE_BYTES)
    rows = list(islice(_rows(buffer, dialect, format), _SAMPLE_ROWS))
    if names is None:
        names = [f"_c{index + 1}" for index in range(_usual_width(rows))]
    return names, [row for row in rows if len(row) == len(names)] or rows


def _usual_width(rows: list[list[str | None]]) -> int:
    """The number of columns that most records have."""
    widths = Counter(map(len, rows)).most_common(1)
    return widths[0][0] if widths else 0


def _rows(buffer: ByteBuffer, dialect: Dialect, format: CsvFormat) -> Iterator[list[str | None]]:
    nulls = frozenset(format.null_if)
    for record in dialect.records(buffer.data, 0, final=buffer.ended):
        if record.broken is None:
            fields = dialect.fields(buffer.data, record)
            yield [text_of(field, format, nulls, "replace") for field in fields]
