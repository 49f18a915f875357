"""From the number of a record in a block to its line, its bytes and the character of a field."""

from __future__ import annotations

import struct
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from calque.loader.model.outcome import RowError
from calque.loader.run.formats.delimited.blocks import Block
from calque.loader.run.formats.delimited.dialect import Dialect, Record
from calque.loader.run.formats.reader import Extent
from calque.loader.run.formats.refusal import CellError, Code, shorten, show_bytes


class BlockRecords(Protocol):
    """The records of a block, by number, and its physical lines."""

    count: int
    lines: int

    def record(self, index: int) -> Record: ...

    def raw(self, index: int) -> bytes:
        """The bytes of a record without its delimiter."""

    def line(self, index: int) -> int:
        """Lines of the block before the record."""

    def character(self, index: int, field: int) -> int:
        """Where a field begins in its record, counted in characters from 1."""


class Locator:
    """The records of a block, found when a row of it was refused and not before."""

    def __init__(self, block: Block, dialect: Dialect, before: Extent, file: str) -> None:
        self._before = before
        self._offset = block.offset
        self._file = file
        self._records = _records_of(block, dialect)
        self.count = self._records.count
        self.lines = self._records.lines

    def record(self, index: int) -> Record:
        """A record by its number in the block."""
        return self._records.record(index)

    def raw(self, index: int) -> bytes:
        """The bytes of a record without its delimiter."""
        return self._records.raw(index)

    def error(
        self,
        index: int,
        code: Code,
        message: str,
        *,
        field: int | None = None,
        column: str | None = None,
        target_type: str | None = None,
        value: str | None = None,
    ) -> RowError:
        """The error of a record; ``field`` is the index of the field in the file."""
        record = self.record(index)
        sound = field is not None and record.broken is None
        return RowError(
            file=self._file,
            line=self._before.lines + self._records.line(index) + 1,
            record=self._before.records + index + 1,
            column=column,
            character=self._records.character(index, field or 0) if sound else None,
            target_type=target_type,
            value=shorten(value),
            code=code,
            message=message,
            raw=show_bytes(self._records.raw(index)),
            byte_offset=self._offset + record.start,
        )

    def cell_error(self, index: int, cell_error: CellError, field: int | None) -> RowError:
        """The error of a record with a cell that does not fit."""
        return self.error(
            index,
            cell_error.code,
            cell_error.message,
            field=field,
            column=cell_error.column,
            target_type=cell_error.target_type,
            value=cell_error.value,
        )


class _LineRecords:
    """Every line is a record: no quotes, escapes, comments or blank lines. Quick."""

    def __init__(self, data: bytes, end: int, dialect: Dialect) -> None:
        self._data = data
        self._end = end
        self._delimiter = dialect.delimiter
        size = pa.py_buffer(struct.pack("ii", 0, end))
        text = pa.Array.from_buffers(pa.binary(), 1, [None, size, pa.py_buffer(data)])
        lines = pc.split_pattern(text, dialect.record_delimiter).flatten()
        self.lines = len(lines) - 1
        ends_open = not data.endswith(dialect.record_delimiter, 0, end)
        self.count = self.lines + ends_open
        self._offsets = memoryview(lines.buffers()[1]).cast("i")  # the delimiters left out
        found = lines.slice(0, self.count)
        self.has_blank = bool(pc.any(pc.equal(pc.binary_length(found), 0)).as_py()) or (
            data.find(b"\r", 0, end) >= 0 and bool(pc.any(pc.equal(found, b"\r")).as_py())
        )

    def record(self, index: int) -> Record:
        end = min(self._offsets[index + 1] + index + 1, self._end)
        return Record(self._offsets[index] + index, end)

    def raw(self, index: int) -> bytes:
        line = self._data[self._offsets[index] + index : self._offsets[index + 1] + index]
        return line.removesuffix(b"\r")

    def line(self, index: int) -> int:
        return index

    def character(self, index: int, field: int) -> int:
        raw = self.raw(index)
        fields = raw.split(self._delimiter, field)
        start = len(raw) - len(fields[field]) if field < len(fields) else len(raw)
        return len(raw[:start].decode("utf-8", "replace")) + 1


class _ExactRecords:
    """Records found one by one. Exact."""

    def __init__(self, data: bytes, dialect: Dialect) -> None:
        self._data = data
        self._dialect = dialect
        self._records = list(dialect.records(data, 0, final=True))
        self._before: list[int] = []
        line, at = 0, 0
        for record in self._records:
            line += dialect.lines_in(data, at, record.start)
            at = record.start
            self._before.append(line)
        self.count = len(self._records)
        self.lines = dialect.lines_in(data, 0, len(data))

    def record(self, index: int) -> Record:
        return self._records[index]

    def raw(self, index: int) -> bytes:
        return self._dialect.raw(self._data, self._records[index])

    def line(self, index: int) -> int:
        return self._before[index]

    def character(self, index: int, field: int) -> int:
        record = self._records[index]
        fields = self._dialect.fields(self._data, record)
        end = record.start + len(self._dialect.raw(self._data, record))
        start = fields[field].start if field < len(fields) else end
        return len(self._data[record.start : start].decode("utf-8", "replace")) + 1


def _records_of(block: Block, dialect: Dialect) -> BlockRecords:
    data, end = block.data, block.end
    marks = (dialect.quote, dialect.escape, dialect.comment)
    if dialect.record_delimiter in (b"\n", b"\r") and not any(
        mark is not None and data.find(mark, 0, end) >= 0 for mark in marks
    ):
        lines = _LineRecords(data, end, dialect)
        if not lines.has_blank:
            return lines
    return _ExactRecords(data[:end], dialect)
