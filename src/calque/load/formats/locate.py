"""From the number of a record in a block to its line, its bytes and the character of a field."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from calque.load.formats.blocks import Block
from calque.load.formats.reading import Extent
from calque.load.formats.records import Dialect, Record
from calque.load.formats.reject import Code, Misfit, cut, shown
from calque.load.manifest import RowError


class Locator:
    """The records of a block, found when a row of it was refused and not before."""

    def __init__(self, block: Block, dialect: Dialect, before: Extent, file: str) -> None:
        self._data = block.data if len(block.data) == block.end else block.data[: block.end]
        self._dialect = dialect
        self._before = before
        self._offset = block.offset
        self._file = file
        self.records: list[Record] = []
        self.lines_before: list[int] = []
        find = self._plain_records if self._is_plain() else self._exact_records
        for record, line in find(block.final):
            self.records.append(record)
            self.lines_before.append(line)
        self.lines = dialect.lines_in(self._data, 0, block.end)

    @property
    def count(self) -> int:
        return len(self.records)

    def raw(self, index: int) -> bytes:
        """The bytes of a record without its delimiter."""
        return self._dialect.raw(self._data, self.records[index])

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
        record = self.records[index]
        raw = self.raw(index)
        return RowError(
            file=self._file,
            line=self._before.lines + self.lines_before[index] + 1,
            record=self._before.records + index + 1,
            column=column,
            character=self._character(record, field),
            target_type=target_type,
            value=cut(value),
            code=code,
            message=message,
            raw=shown(raw),
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

    def _character(self, record: Record, field: int | None) -> int | None:
        """Where a field begins in its record, counted in characters from 1."""
        if field is None or record.broken is not None:
            return None
        fields = self._dialect.fields(self._data, record)
        start = (
            fields[field].start
            if field < len(fields)
            else record.start + len(self._dialect.raw(self._data, record))
        )
        return len(self._data[record.start : start].decode("utf-8", "replace")) + 1

    def _is_plain(self) -> bool:
        dialect, data = self._dialect, self._data
        if dialect.escape is not None or dialect.comment is not None:
            return False
        return dialect.quote is None or dialect.quote not in data

    def _plain_records(self, final: bool) -> Iterator[tuple[Record, int]]:
        delimiter = self._dialect.record_delimiter
        lines = self._data.split(delimiter)
        width = len(delimiter)
        starts = accumulate((len(line) + width for line in lines), initial=0)
        newlines = delimiter in (b"\n", b"\r")
        seen = 0
        for number, (line, start) in enumerate(zip(lines, starts, strict=False)):
            end = min(start + len(line) + width, len(self._data))
            if start < len(self._data) and not self._is_blank(line):
                yield Record(start, end), number if newlines else seen
            if not newlines:
                seen += self._dialect.lines_in(self._data, start, end)

    def _is_blank(self, line: bytes) -> bool:
        return self._dialect.skip_blank_lines and line in (b"", b"\r")

    def _exact_records(self, final: bool) -> Iterator[tuple[Record, int]]:
        line, at = 0, 0
        for record in self._dialect.records(self._data, 0, final=True):
            line += self._dialect.lines_in(self._data, at, record.start)
            at = record.start
            yield record, line
