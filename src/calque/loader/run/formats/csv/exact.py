"""The exact parser of delimited text: record by record, for blocks the quick one cannot be trusted
with."""

from __future__ import annotations

import pyarrow as pa

from calque.loader.model.file_formats import CsvFormat
from calque.loader.model.outcome import RowError
from calque.loader.run.formats.byte_buffer import is_valid_utf8
from calque.loader.run.formats.cast.row_caster import RowCaster
from calque.loader.run.formats.column_map import ColumnMap
from calque.loader.run.formats.csv.hints import delimiter_hint
from calque.loader.run.formats.csv.locator import Locator
from calque.loader.run.formats.delimited.blocks import MAX_RECORD, Block
from calque.loader.run.formats.delimited.dialect import Dialect, Field, text_of
from calque.loader.run.formats.reader import Extent, ParsedBatch
from calque.loader.run.formats.refusal import Code, show_bytes

_BROKEN = {
    Code.BAD_QUOTE: "there is text after a closing quote",
    Code.UNTERMINATED_QUOTE: "a quote is opened and never closed",
}


class ExactParser:
    """Reads blocks record by record; slower by far, and right about every byte.

    Blocks of files that are alike, of one ``file`` at a time.
    """

    def __init__(
        self, format: CsvFormat, dialect: Dialect, mapped: ColumnMap, caster: RowCaster, file: str
    ) -> None:
        self._format = format
        self._dialect = dialect
        self._mapped = mapped
        self._caster = caster
        self.file = file
        self._nulls = frozenset(format.null_if)

    def parse(self, block: Block, before: Extent, room: int) -> tuple[ParsedBatch, int]:
        """Rows and the number of lines; at most ``room`` errors are described."""
        if block.broken is not None:
            return self._refuse_endless(block, before, room)
        locator = Locator(block, self._dialect, before, self.file)
        rows: list[list[str | None]] = []
        origin: list[int] = []
        errors: dict[int, RowError | None] = {}
        for index in range(locator.count):
            refused, row = self._row(block, locator, index)
            if refused is None:
                rows.append(row)
                origin.append(index)
            else:
                described = len(errors) < room
                errors[index] = self._describe(locator, index, refused) if described else None
        return self._cast_rows(rows, origin, locator, before, errors, room), locator.lines

    def _row(
        self, block: Block, locator: Locator, index: int
    ) -> tuple[tuple[Code, str, int | None] | None, list[str | None]]:
        record = locator.record(index)
        if record.broken is not None:
            return (record.broken, _BROKEN[record.broken], None), []
        fields = self._dialect.fields(block.data, record)
        if self._is_refused(len(fields)):
            return self._width_error(fields, locator.raw(index)), []
        try:
            errors = "replace" if self._format.replace_invalid_characters else "strict"
            return None, [text_of(field, self._format, self._nulls, errors) for field in fields]
        except UnicodeDecodeError as error:
            at = next(
                number for number, field in enumerate(fields) if not is_valid_utf8(field.value)
            )
            why = f"is not UTF-8: {error.reason}; --encoding (ENCODING) names another encoding"
            return (Code.INVALID_ENCODING, why, at), []

    def _is_refused(self, width: int) -> bool:
        """A record of another width, unless what it has too much is rescued."""
        if not self._format.error_on_column_count_mismatch or width == self._mapped.width:
            return False
        return width < self._mapped.width or self._caster.rescue is None

    def _width_error(self, fields: list[Field], raw: bytes) -> tuple[Code, str, int | None]:
        width = self._mapped.width
        return Code.COLUMN_COUNT, width_message(len(fields), width, raw, self._dialect), width

    def _describe(
        self, locator: Locator, index: int, refused: tuple[Code, str, int | None]
    ) -> RowError:
        code, message, field = refused
        named = zip(self._mapped.schema.names, self._mapped.sources, strict=True)
        column = next((name for name, source in named if source == field is not None), None)
        return locator.error(index, code, message, field=field, column=column)

    def _cast_rows(
        self,
        rows: list[list[str | None]],
        origin: list[int],
        locator: Locator,
        before: Extent,
        errors: dict[int, RowError | None],
        room: int,
    ) -> ParsedBatch:
        columns = [self._column(rows, source) for source in self._mapped.sources]
        cast = self._caster.cast(columns, len(rows), self._extras(rows))
        sources = dict(zip(self._mapped.schema.names, self._mapped.sources, strict=True))
        for cell_error in cast.cell_errors:
            index = origin[cell_error.row]
            described = len(errors) < room
            source = sources[cell_error.column]
            errors[index] = locator.cell_error(index, cell_error, source) if described else None
        rejected = tuple(sorted(errors))
        kept = tuple(found for at in rejected if (found := errors[at]) is not None)
        return ParsedBatch(cast.rows, before.records + 1, locator.count, rejected, kept)

    def _extras(self, rows: list[list[str | None]]) -> dict[int, dict[str, str | None]]:
        """Fields beyond the last column, by their position, for the rescue column."""
        width = self._mapped.width
        if self._caster.rescue is None:
            return {}
        return {
            at: {f"_c{index + 1}": row[index] for index in range(width, len(row))}
            for at, row in enumerate(rows)
            if len(row) > width
        }

    def _column(self, rows: list[list[str | None]], source: int | None) -> pa.Array | None:
        if source is None:
            return None
        return pa.array([row[source] if source < len(row) else None for row in rows], pa.string())

    def _refuse_endless(self, block: Block, before: Extent, room: int) -> tuple[ParsedBatch, int]:
        """A record that is refused unread: the one that has no end."""
        error = RowError(
            file=self.file,
            line=before.lines + 1,
            record=before.records + 1,
            column=None,
            character=None,
            target_type=None,
            value=None,
            code=block.broken or Code.MALFORMED,
            message=f"the record is longer than {MAX_RECORD >> 20} MiB: "
            "is the record delimiter right?",
            raw=show_bytes(block.data[:256]),
            byte_offset=block.offset,
        )
        rows = self._caster.cast([None] * len(self._mapped.schema), 0).rows
        kept = (error,) if room > 0 else ()
        return ParsedBatch(rows, before.records + 1, 1, (0,), kept), 1


def width_message(found: int, wanted: int, raw: bytes, dialect: Dialect) -> str:
    """Says how a record's width differs, and what the delimiter may be."""
    names = f"the record has {found} column{'s' if found != 1 else ''}, {wanted} are expected"
    return names + delimiter_hint(raw, dialect)
