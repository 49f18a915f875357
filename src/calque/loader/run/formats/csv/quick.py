"""The quick parser of delimited text: pyarrow over a block, wherever it reads as we mean it."""

from __future__ import annotations

import re
from codecs import BOM_UTF8
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as arrow_csv

from calque.loader.model.file_formats import CsvFormat
from calque.loader.model.outcome import RowError
from calque.loader.run.formats.byte_buffer import is_valid_utf8
from calque.loader.run.formats.cast.arrow_quirks import is_beyond, may_be_beyond
from calque.loader.run.formats.cast.result import one_chunk
from calque.loader.run.formats.cast.row_caster import RowCaster
from calque.loader.run.formats.column_map import ColumnMap
from calque.loader.run.formats.csv.exact import width_message
from calque.loader.run.formats.csv.locator import Locator
from calque.loader.run.formats.delimited.blocks import Block
from calque.loader.run.formats.delimited.dialect import Dialect
from calque.loader.run.formats.reader import Extent, ParsedBatch
from calque.loader.run.formats.refusal import CellError, Code

_FAILED_COLUMN = re.compile(r"In CSV column #(\d+)")
_BLANK = re.compile(rb"(?:\A|\n)\r?\n")
_DELIMITER = b"\x1f"
"""Stands for a delimiter of several bytes in blocks that do not hold it."""


class QuickParser:
    """Parses blocks of files that are alike, of one ``file`` at a time; ``learned`` are columns
    that must be read as text."""

    def __init__(
        self,
        format: CsvFormat,
        dialect: Dialect,
        mapped: ColumnMap,
        caster: RowCaster,
        file: str,
        learned: set[str] | None = None,
    ) -> None:
        self._learned = set() if learned is None else learned
        self._format = format
        self._dialect = dialect
        self._mapped = mapped
        self._caster = caster
        self.file = file
        self._names = [f"f{index}" for index in range(mapped.width)]
        self._types = self._quick_types()
        self._may_be_beyond = [name for name, kind in self._types.items() if may_be_beyond(kind)]
        self._nulls = [*format.null_if, *([""] if format.empty_field_as_null else [])]
        self._counts_rows = self._blank_lines_fail()
        self._without_integers = False

    def parse(self, block: Block, before: Extent, room: int) -> tuple[ParsedBatch, int] | None:
        """Rows and the number of lines; None where the block must be read record by record."""
        data = self._readable_bytes(block)
        if data is None:
            return None
        invalid: list[arrow_csv.InvalidRow] = []
        self._without_integers = self._may_hold_hexadecimals(block)
        table = self._table(data, invalid)
        if table is None or (invalid and not self._format.error_on_column_count_mismatch):
            return None
        cast = self._caster.cast(self._columns(table), table.num_rows)
        records, first = table.num_rows + len(invalid), before.records + 1
        if not invalid and not cast.cell_errors:
            return ParsedBatch(cast.rows, first, records), self._count_lines(block, records)
        origin = _origin(records, invalid)
        bad = [(origin[cell_error.row], cell_error) for cell_error in cast.cell_errors]
        rejected = sorted([row.number - 1 for row in invalid] + [index for index, _ in bad])
        if room <= 0:
            return (
                ParsedBatch(cast.rows, first, records, tuple(rejected)),
                self._count_lines(block, records),
            )
        locator = Locator(block, self._dialect, before, self.file)
        if locator.count != records:
            return None
        errors = self._errors(locator, invalid, bad, room)
        return ParsedBatch(cast.rows, first, records, tuple(rejected), errors), locator.lines

    def _readable_bytes(self, block: Block) -> pa.Buffer | None:
        """The block as pyarrow may have it; None where it would read it otherwise than we do."""
        data, end, dialect = block.data, block.end, self._dialect
        if data.startswith(BOM_UTF8):  # text, where it does not begin the file; pyarrow drops it
            return None
        if not (data.isascii() or is_valid_utf8(data[:end])):
            return None
        if dialect.comment is not None and data.find(dialect.comment, 0, end) >= 0:
            return None
        if dialect.escapes_in(data, end):
            return None
        if not self._line_ends_are_sound(data, end) or not self._quotes_are_sound(block):
            return None
        if not dialect.is_plain:
            return self._plain_copy(data[:end])
        if data.endswith(dialect.delimiter, 0, end) and dialect.quote is not None:
            # pyarrow takes the empty field before the end of the text for a quoted one if the
            # field before it was.
            return pa.py_buffer(data[:end] + dialect.record_delimiter)
        return pa.py_buffer(data).slice(0, end)

    def _may_hold_hexadecimals(self, block: Block) -> bool:
        """pyarrow takes 0xFF for an integer, which it is not here: then text is cast instead."""
        data, end = block.data, block.end
        if not any(map(pa.types.is_integer, self._types.values())):
            return False
        found = data.find(b"0x", 0, end) >= 0 or data.find(b"0X", 0, end) >= 0
        self._counts_rows = self._counts_rows and not found
        return found

    def _block_types(self) -> dict[str, pa.DataType]:
        if not self._without_integers:
            return self._types
        return {
            name: pa.string() if pa.types.is_integer(kind) else kind
            for name, kind in self._types.items()
        }

    def _line_ends_are_sound(self, data: bytes, end: int) -> bool:
        if self._dialect.record_delimiter != b"\n":
            return True
        if not self._format.skip_blank_lines and _BLANK.search(data, 0, end):
            return False
        if data.find(b"\r", 0, end) < 0:
            return True
        if self._dialect.keeps_returns:
            return False
        return data.count(b"\r", 0, end) == data.count(b"\r\n", 0, end)

    def _quotes_are_sound(self, block: Block) -> bool:
        quote = self._dialect.quote
        if quote is None or block.data.find(quote, 0, block.end) < 0:
            return True
        self._counts_rows = False
        if self._format.trim_space or not self._dialect.is_plain:
            return False
        return block.paired or self._dialect.quotes_pair(block.data, block.end)

    def _plain_copy(self, data: bytes) -> pa.Buffer | None:
        """The same rows with single-byte delimiters, if those do not occur in them."""
        dialect = self._dialect
        if dialect.record_delimiter not in (b"\n", b"\r"):
            if b"\n" in data or b"\r" in data:
                return None
            self._counts_rows = False
            data = data.replace(dialect.record_delimiter, b"\n")
        if len(dialect.delimiter) > 1:
            if _DELIMITER in data:
                return None
            data = data.replace(dialect.delimiter, _DELIMITER)
        return pa.py_buffer(data)

    def _table(self, data: pa.Buffer, invalid: list[arrow_csv.InvalidRow]) -> pa.Table | None:
        for _ in range(len(self._names) + 2):
            invalid.clear()
            try:
                table = self._read(data, invalid)
            except pa.ArrowInvalid as error:
                if not self._retreat(str(error)):
                    return None
                continue
            beyond = [name for name in self._may_be_beyond if is_beyond(table[name])]
            if not beyond:
                return table
            for name in beyond:
                self._read_as_text(name)
        return None

    def _retreat(self, why: str) -> bool:
        """After a failure: let blank lines be, or read the column that failed as text."""
        if self._counts_rows and "invalid value ''" in why:
            self._counts_rows = False
            return True
        found = _FAILED_COLUMN.search(why)
        name = self._names[int(found.group(1))] if found else ""
        if self._types.get(name, pa.string()) == pa.string():
            return False
        self._read_as_text(name)
        return True

    def _read_as_text(self, name: str) -> None:
        """From now on, and in the files that follow."""
        self._types[name] = pa.string()
        self._counts_rows = self._counts_rows and self._blank_lines_fail()
        source = self._names.index(name)
        self._learned.add(self._mapped.schema.names[self._mapped.sources.index(source)])

    def _read(self, data: pa.Buffer, invalid: list[arrow_csv.InvalidRow]) -> pa.Table:
        if data.size == 0:
            return pa.table({name: pa.array([], kind) for name, kind in self._types.items()})

        def set_apart(row: arrow_csv.InvalidRow) -> str:
            invalid.append(row)
            return "skip"

        dialect = self._dialect
        delimiter = dialect.delimiter if len(dialect.delimiter) == 1 else _DELIMITER
        return arrow_csv.read_csv(
            pa.BufferReader(data),
            read_options=arrow_csv.ReadOptions(
                column_names=self._names, use_threads=False, block_size=data.size + 1
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=delimiter.decode(),
                quote_char=self._format.quote or False,
                double_quote=True,
                newlines_in_values=True,
                ignore_empty_lines=self._format.skip_blank_lines and not self._counts_rows,
                invalid_row_handler=set_apart,
            ),
            convert_options=self._convert_options(),
        )

    def _convert_options(self) -> arrow_csv.ConvertOptions:
        format = self._format
        nulls = [] if format.trim_space else self._nulls
        return arrow_csv.ConvertOptions(
            check_utf8=False,
            include_columns=list(self._types),
            column_types=self._block_types(),
            null_values=nulls,
            strings_can_be_null=bool(nulls),
            quoted_strings_can_be_null=format.quoted_nulls,
            true_values=list(format.true_values),
            false_values=list(format.false_values),
            decimal_point=format.decimal_point,
        )

    def _columns(self, table: pa.Table) -> list[pa.Array | None]:
        columns: list[pa.Array | None] = []
        for source in self._mapped.sources:
            if source is None:
                columns.append(None)
                continue
            column = one_chunk(table.column(self._names[source]))
            columns.append(self._trim(column) if self._format.trim_space else column)
        return columns

    def _trim(self, column: pa.Array) -> pa.Array:
        trimmed = pc.utf8_trim_whitespace(column)
        if not self._nulls:
            return trimmed
        is_null = pc.is_in(trimmed, value_set=pa.array(self._nulls, pa.string()))
        return pc.if_else(is_null, pa.scalar(None, pa.string()), trimmed)

    def _count_lines(self, block: Block, records: int) -> int:
        """Physical lines of a sound block; while blank lines would fail, as many as records."""
        if self._counts_rows:
            return records
        return self._dialect.lines_in(block.data, 0, block.end)

    def _errors(
        self,
        locator: Locator,
        invalid: Sequence[arrow_csv.InvalidRow],
        bad: Sequence[tuple[int, CellError]],
        room: int,
    ) -> tuple[RowError, ...]:
        found: dict[int, arrow_csv.InvalidRow | CellError] = dict(bad)
        found.update({row.number - 1: row for row in invalid})
        sources = dict(zip(self._mapped.schema.names, self._mapped.sources, strict=True))
        errors = []
        for index in sorted(found)[:room]:
            why = found[index]
            if isinstance(why, CellError):
                source = sources[why.column]
                errors.append(locator.cell_error(index, why, source))
            else:
                raw, width = locator.raw(index), self._mapped.width
                message = width_message(why.actual_columns, width, raw, self._dialect)
                errors.append(locator.error(index, Code.COLUMN_COUNT, message, field=width))
        return tuple(errors)

    def _quick_types(self) -> dict[str, pa.DataType]:
        types: dict[str, pa.DataType] = {}
        for field, source in zip(self._mapped.schema, self._mapped.sources, strict=True):
            if source is not None:
                known = pa.string() if field.name in self._learned else None
                types[self._names[source]] = known or self._quick_type(field.type)
        return types

    def _quick_type(self, kind: pa.DataType) -> pa.DataType:
        """The column's own type where pyarrow's conversion of text is as strict as ours.

        Decimals are cast from text afterwards, at no cost: see ``text_cast``.
        """
        floating = pa.types.is_floating(kind) and self._format.nan_display is None
        number = pa.types.is_integer(kind) or floating
        exact = number or pa.types.is_boolean(kind)
        date = pa.types.is_date32(kind) and self._format.date_format is None
        naive = pa.types.is_timestamp(kind) and kind.tz is None
        moment = naive and self._format.timestamp_format is None
        known = (exact or date or moment) and not self._format.trim_space
        return kind if known else pa.string()

    def _blank_lines_fail(self) -> bool:
        """A blank line would be an error in some column: then rows are lines, without counting."""
        plain = self._format.skip_blank_lines and self._mapped.width > 1
        typed = any(kind != pa.string() for kind in self._types.values())
        return plain and typed and "" not in self._nulls


def _origin(records: int, invalid: Sequence[arrow_csv.InvalidRow]) -> Sequence[int]:
    """For each row that was parsed its number among the records, those set apart included."""
    if not invalid:
        return range(records)
    apart = {row.number - 1 for row in invalid}
    return [index for index in range(records) if index not in apart]
