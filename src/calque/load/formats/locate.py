"""From the number of a record in a block to its line, its bytes and the character of a field."""

from __future__ import annotations

from typing import Protocol

from calque.load.formats.blocks import Block
from calque.load.formats.reading import Extent
from calque.load.formats.records import Dialect, Record
from calque.load.formats.reject import Code, Misfit, cut, shown
from calque.load.manifest import RowError


class Places(Protocol):
    """The records of a block, by number."""

    @property
    def count(self) -> int: ...

    def record(self, index: int) -> Record: ...

    def line(self, index: int) -> int:
        """Lines of the block before the record."""

    def character(self, record: Record, field: int) -> int:
        """Where a field begins in its record, counted in characters from 1."""


class Locator:
    """The records of a block, found when a row of it was refused and not before."""

    def __init__(self, block: Block, dialect: Dialect, before: Extent, file: str) -> None:
        self.data = block.data if len(block.data) == block.end else block.data[: block.end]
        self._dialect = dialect
        self._before = before
        self._offset = block.offset
        self._file = file
        self._places = _places(self.data, dialect)
        self.lines = dialect.lines_in(self.data, 0, block.end)

    @property
    def count(self) -> int:
        return self._places.count

    def record(self, index: int) -> Record:
        """A record by its number in the block."""
        return self._places.record(index)

    def raw(self, index: int) -> bytes:
        """The bytes of a record without its delimiter."""
        return self._dialect.raw(self.data, self.record(index))

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
            line=self._before.lines + self._places.line(index) + 1,
            record=self._before.records + index + 1,
            column=column,
            character=self._places.character(record, field or 0) if sound else None,
            target_type=target_type,
            value=cut(value),
            code=code,
            message=message,
            raw=shown(self._dialect.raw(self.data, record)),
            byte_offset=self._offset + record.start,
        )

    def misfit(self, index: int, misfit: Misfit, field: int | None) -> RowError:
        """The error of a record with a cell that does not fit."""
        return self.error(
            index,
            misfit.code,
            misfit.message,
            field=field,
            column=misfit.column,
            target_type=misfit.target_type,
            value=misfit.value,
        )


class _Lines:
    """Every line is a record: no quotes, escapes, comments or blank lines. Quick."""

    def __init__(self, data: bytes, dialect: Dialect, lines: list[bytes]) -> None:
        self._data = data
        self._dialect = dialect
        self._lines = lines
        self._at = 0
        self._start = 0

    @property
    def count(self) -> int:
        return len(self._lines)

    def record(self, index: int) -> Record:
        """Records are asked for in order, so the way from the last one is short."""
        if index < self._at:
            self._at = self._start = 0
        width = len(self._dialect.record_delimiter)
        self._start += sum(map(len, self._lines[self._at : index])) + (index - self._at) * width
        self._at = index
        end = min(self._start + len(self._lines[index]) + width, len(self._data))
        return Record(self._start, end)

    def line(self, index: int) -> int:
        return index

    def character(self, record: Record, field: int) -> int:
        delimiter = self._dialect.delimiter
        raw = self._dialect.raw(self._data, record)
        before = raw.split(delimiter, field)[:field]
        if raw.count(delimiter) < field:
            return len(raw.decode("utf-8", "replace")) + 1
        passed = b"".join(text + delimiter for text in before)
        return len(passed.decode("utf-8", "replace")) + 1


class _Records:
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

    @property
    def count(self) -> int:
        return len(self._records)

    def record(self, index: int) -> Record:
        return self._records[index]

    def line(self, index: int) -> int:
        return self._before[index]

    def character(self, record: Record, field: int) -> int:
        fields = self._dialect.fields(self._data, record)
        end = record.start + len(self._dialect.raw(self._data, record))
        start = fields[field].start if field < len(fields) else end
        return len(self._data[record.start : start].decode("utf-8", "replace")) + 1


def _places(data: bytes, dialect: Dialect) -> Places:
    marks = (dialect.quote, dialect.escape, dialect.comment)
    if dialect.record_delimiter not in (b"\n", b"\r") or any(
        mark is not None and mark in data for mark in marks
    ):
        return _Records(data, dialect)
    lines = data.split(dialect.record_delimiter)
    if not lines[-1]:
        lines.pop()
    if b"" in lines or b"\r" in lines:
        return _Records(data, dialect)
    return _Lines(data, dialect, lines)
