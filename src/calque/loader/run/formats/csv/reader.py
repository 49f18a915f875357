"""Delimited text (CSV, TSV): the quick parser over a block, the exact one where that fails.

Three ways through a block, each tried only when the one before cannot be trusted:

1. pyarrow with typed columns. A column that fails becomes text from then on and is cast strictly;
2. the same, with rows set apart: those of a wrong width and those with a cell that does not fit.
   Their positions are looked up in the block;
3. record by record (:mod:`records`), for text whose quotes, escapes, line ends or encoding are
   such that pyarrow would read it otherwise than we do, or silently.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa

from calque.loader.model.file_formats import CsvFormat
from calque.loader.run.formats.byte_buffer import ByteBuffer
from calque.loader.run.formats.cast.row_caster import RowCaster
from calque.loader.run.formats.cast.rules import CastRules
from calque.loader.run.formats.column_map import ColumnMap, map_columns, require, with_extra
from calque.loader.run.formats.csv.exact import ExactParser
from calque.loader.run.formats.csv.hints import delimiter_hint
from calque.loader.run.formats.csv.quick import QuickParser
from calque.loader.run.formats.delimited.blocks import Block, cut_blocks
from calque.loader.run.formats.delimited.dialect import Dialect
from calque.loader.run.formats.delimited.open_buffer import open_buffer
from calque.loader.run.formats.reader import Extent, ParsedBatch, ReadSpec
from calque.loader.run.formats.refusal import Code, FileRefused
from calque.loader.run.formats.staged_source import Source
from calque.values import KIB, MIB

_HEADER_MOST = 4 * MIB
"""Of the file's head, which every later piece reads again for the names of the columns."""


class CsvReader:
    """Reads one piece of delimited text. Only plain UTF-8 text can be read in later pieces."""

    def __init__(self, source: Source, spec: ReadSpec) -> None:
        assert isinstance(spec.format, CsvFormat)
        self._source = source
        self._spec = spec
        self._format = spec.format
        self._room = spec.keep_errors
        self.extent = Extent()

    def read(self) -> Iterator[ParsedBatch]:
        buffer, dialect, names = self.prologue()
        if dialect is None or (self._format.parse_header and names is None):
            return
        quick, exact = self._parsers(names, dialect)
        self.extent.start = self.extent.end = buffer.base
        stop = None if self._source.end == self._source.size else self._source.end
        for block in cut_blocks(buffer, dialect, stop):
            yield self._parse(block, quick, exact)

    def _parsers(
        self, names: list[str] | None, dialect: Dialect
    ) -> tuple[QuickParser, ExactParser]:
        """Those of the task's last file, if this one has the same columns."""
        key = (dialect, None if names is None else tuple(names))
        found: tuple[QuickParser, ExactParser] | None = self._spec.kept.get(key)
        if found is None:
            found = self._make_parsers(names, dialect)
            self._spec.keep(key, found)
        quick, exact = found
        quick.file = exact.file = self._source.location
        return quick, exact

    def _make_parsers(
        self, names: list[str] | None, dialect: Dialect
    ) -> tuple[QuickParser, ExactParser]:
        mapped, extra = self._map(names, dialect)
        rules, rescue = CastRules.of(self._format), self._spec.rescue
        caster = RowCaster(self._spec.schema, rules, rescue, extra)
        file = self._source.location
        # Of a record that is too wide the quick parser knows nothing but that; the exact one
        # rescues its last fields.
        lenient = self._format
        if rescue is not None:
            lenient = replace(lenient, error_on_column_count_mismatch=False)
        return (
            QuickParser(lenient, dialect, mapped, caster, file, self._spec.learned),
            ExactParser(self._format, dialect, mapped, caster, file),
        )

    def prologue(self) -> tuple[ByteBuffer, Dialect | None, list[str] | None]:
        """Pass over what stands before the first record; the header's names, if there is one."""
        buffer = self._open_buffer()
        buffer.fill(64 * KIB)
        if not buffer.data:
            return buffer, None, None
        dialect = Dialect.of(self._format, self._record_delimiter(buffer))
        if self._source.start == 0:
            buffer.drop_mark()
            return buffer, dialect, self._header(buffer, dialect)
        head = ByteBuffer(iter([self._source.head(_HEADER_MOST)]))
        head.drop_mark()
        names = self._header(head, dialect)
        self.extent.lines = 0
        if self._source.begin is not None:
            buffer.drop_to(self._source.begin)
        else:
            _drop_line(buffer, dialect)  # a later piece begins one byte early, inside a record
        return buffer, dialect, names

    def _open_buffer(self) -> ByteBuffer:
        format = self._format
        replace = format.replace_invalid_characters
        return open_buffer(self._source, format.compression, format.encoding, replace=replace)

    def _record_delimiter(self, buffer: ByteBuffer) -> bytes:
        stated = self._format.record_delimiter
        if stated not in ("auto", "\n", "\r\n"):
            return stated.encode()
        has_line_feed = b"\n" in buffer.data
        return b"\r" if stated == "auto" and not has_line_feed and b"\r" in buffer.data else b"\n"

    def _map(self, names: list[str] | None, dialect: Dialect) -> tuple[ColumnMap, tuple[str, ...]]:
        spec = self._spec
        mapped = map_columns(spec.schema, names, spec.match, spec.columns, self._source.location)
        require(mapped, self._source.location)
        extra: tuple[str, ...] = ()
        if spec.rescue is not None:
            mapped, extra = with_extra(mapped, names, pa.string())
        if names is not None and self._format.error_on_column_count_mismatch:
            self._check_header(mapped, names, dialect)
        return mapped, extra

    def _header(self, buffer: ByteBuffer, dialect: Dialect) -> list[str] | None:
        for _ in range(self._format.skip_header):
            if buffer.ended and not buffer.data:
                break  # more lines are to be skipped than there are
            _drop_line(buffer, dialect)
            self.extent.lines += 1
        if not self._format.parse_header:
            return None
        line = _plain_line(buffer.data, dialect)
        known: list[str] | None = self._spec.kept.get(line) if line else None
        if known is not None:
            self.extent.lines += 1
            buffer.drop(len(line))
            return known
        buffer.fill(_HEADER_MOST)
        record = next(dialect.records(buffer.data, 0, final=True), None)
        if record is None:
            return None
        if record.broken:
            raise FileRefused.at(
                self._source.location,
                record.broken,
                "the header cannot be read: its quotes do not close",
                line=self.extent.lines + 1,
                byte_offset=buffer.base,
                raw=dialect.raw(buffer.data, record),
            )
        names = [
            field.value.decode("utf-8", "replace").strip()
            for field in dialect.fields(buffer.data, record)
        ]
        if any(ord(letter) < 9 for name in names for letter in name):
            raise FileRefused.at(
                self._source.location,
                Code.NOT_THIS_FORMAT,
                "the header holds control characters: this is no text",
                hint="Name the format that the file has.",
                line=self.extent.lines + 1,
                byte_offset=buffer.base,
            )
        lines = dialect.lines_in(buffer.data, 0, record.end)
        if line and (lines, record.end) == (1, len(line)):
            self._spec.keep(line, names)
        self.extent.lines += lines
        buffer.drop(record.end)
        return names

    def _check_header(self, mapped: ColumnMap, names: list[str], dialect: Dialect) -> None:
        if not names or len(names) == mapped.width:
            return
        line = ",".join(names)
        raise FileRefused.at(
            self._source.location,
            Code.COLUMN_COUNT,
            f"the header has {len(names)} columns, {mapped.width} are expected"
            f"{delimiter_hint(line.encode(), dialect)}",
            hint="Match by name, list the columns, or set ERROR_ON_COLUMN_COUNT_MISMATCH = FALSE.",
            line=self.extent.lines,
        )

    def _parse(self, block: Block, quick: QuickParser, exact: ExactParser) -> ParsedBatch:
        found = quick.parse(block, self.extent, self._room) if block.broken is None else None
        parsed, lines = found or exact.parse(block, self.extent, self._room)
        self._room -= len(parsed.errors)
        self.extent.lines += lines
        self.extent.records += parsed.records
        self.extent.end = block.offset + block.end
        return parsed


def _plain_line(data: bytes, dialect: Dialect) -> bytes:
    """The first line of the text, if nothing in it or behind it can make more or less of it."""
    line = data[: data.find(dialect.record_delimiter) + len(dialect.record_delimiter)]
    marks = (dialect.quote, dialect.escape, dialect.comment)
    ends = line.endswith(dialect.record_delimiter)
    return line if ends and not any(mark and mark in line for mark in marks) else b""


def _drop_line(buffer: ByteBuffer, dialect: Dialect) -> None:
    delimiter = dialect.record_delimiter
    while True:
        found = buffer.data.find(delimiter)
        if found >= 0:
            buffer.drop(found + len(delimiter))
            return
        if buffer.ended:
            buffer.drop(len(buffer.data))
            return
        buffer.drop(max(0, len(buffer.data) - len(delimiter)))
        buffer.fill(MIB)
