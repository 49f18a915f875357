"""The quick parser of NDJSON: pyarrow over a block, where every line is one sound object."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as arrow_json

from calque.loader.model.file_formats import JsonFormat
from calque.loader.run.formats.byte_buffer import is_valid_utf8
from calque.loader.run.formats.cast.arrow_quirks import (
    has_decimals,
    is_beyond,
    misleading_numbers,
    most_places,
)
from calque.loader.run.formats.cast.decimals import decimals_of_doubles, has_long_numbers
from calque.loader.run.formats.cast.result import one_chunk
from calque.loader.run.formats.cast.row_caster import CastRows, RowCaster
from calque.loader.run.formats.cast.rules import CastRules
from calque.loader.run.formats.delimited.blocks import Block
from calque.loader.run.formats.reader import Extent, ParsedBatch, ReadSpec

_NO_OBJECT = re.compile(rb"\s*(?:\xef\xbb\xbf|null)")
_NULL_LINE = re.compile(rb"[\n}]\s*null")


class QuickParser:
    """Parses blocks of one file. Whatever is not as expected is left to the exact parser."""

    def __init__(self, spec: ReadSpec, names: Mapping[str, str]) -> None:
        assert isinstance(spec.format, JsonFormat)
        self._format = spec.format
        self._names = [names.get(name, name) for name in spec.schema.names]
        self._wanted = set(spec.columns) or set(spec.schema.names)
        self._fields = list(spec.schema)
        self._caster = RowCaster(spec.schema, CastRules.of(spec.format), spec.rescue)
        self._folded = {name.casefold(): name for name in self._names}
        self._insensitive = spec.match == "name_insensitive"
        distinct = len(set(self._names)) == len(self._names)
        strict = all(_is_read_strictly(field.type) for field in self._fields)
        self._usable = spec.rescue is None and distinct and strict
        self._decimals = any(has_decimals(field.type) for field in self._fields)
        self._places = most_places(field.type for field in self._fields)
        self._schema = pa.schema([(name, _quick_type(field.type)) for name, field in self.columns])
        self._with_doubles = pa.schema(
            [(field.name, _double_for(field.type)) for field in self._schema]
        )
        nested = any(has_decimals(kind) for kind in self._with_doubles.types)
        self._tries_doubles = self._decimals and not nested

    @property
    def columns(self) -> list[tuple[str, pa.Field]]:
        """The name of each wanted column in the file, and its field."""
        pairs = zip(self._names, self._fields, strict=True)
        return [(name, field) for name, field in pairs if field.name in self._wanted]

    def can_read(self, block: Block) -> bool:
        """Whether the block is text that can be read quickly at all."""
        return (
            block.broken is None
            and self._usable
            and (block.data.isascii() or is_valid_utf8(block.data[: block.end]))
        )

    def find_misleading_numbers(self, block: Block) -> list[int]:
        """Where numbers stand that must not be read quickly: their lines are to be set apart."""
        if not self._decimals:
            return []
        return list(misleading_numbers(block.data[: block.end], self._places))

    def parse(self, block: Block, before: Extent) -> ParsedBatch | None:
        """Rows, or None where lines of the block must be read one by one."""
        table = self._read_block(block)
        if table is None:
            return None
        ends_open = not block.data.endswith(b"\n", 0, block.end)
        lines = block.data.count(b"\n", 0, block.end) + ends_open
        cast = self.cast_rows(table, lines)
        if cast is None or cast.cell_errors:
            return None
        return ParsedBatch(cast.rows, before.records + 1, lines)

    def _read_block(self, block: Block) -> pa.Table | None:
        data = pa.py_buffer(block.data).slice(0, block.end)
        try:
            if self._tries_doubles and not has_long_numbers(block.data):
                table = self._read_by_doubles(block.data, data)
                if table is not None:
                    return table
                self._tries_doubles = False  # decimals may be text in all of the file
            return None if self.find_misleading_numbers(block) else self.read(data)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # unsound, or a type it cannot read
            return None

    def _read_by_doubles(self, text: bytes, data: pa.Buffer) -> pa.Table | None:
        """None where a decimal is not a number, or not one of its column."""
        try:
            table = self.read(data, self._with_doubles)
        except pa.ArrowInvalid:
            return None
        for field in self._schema:
            if pa.types.is_decimal(field.type):
                column = decimals_of_doubles(one_chunk(table[field.name]), field.type, text)
                if column is None:
                    return None
                table = table.set_column(table.column_names.index(field.name), field, column)
        return table

    def read(self, data: pa.Buffer, schema: pa.Schema | None = None) -> pa.Table:
        """Lines as columns; raises ArrowInvalid, which may tell the row and the column."""
        schema = schema or self._schema
        if _NO_OBJECT.match(data):
            raise pa.ArrowInvalid("no object (pyarrow crashes on null, drops the mark) in row 0")
        extra = "infer" if self._insensitive else "ignore"
        table = arrow_json.read_json(
            pa.BufferReader(data),
            read_options=arrow_json.ReadOptions(use_threads=False, block_size=data.size + 1),
            parse_options=arrow_json.ParseOptions(
                explicit_schema=schema, unexpected_field_behavior=extra
            ),
        )
        row = _first_null(table.select(schema.names))
        if row is not None and _NULL_LINE.search(data):
            raise pa.ArrowInvalid(f"null is no object (pyarrow makes a row of it) in row {row}")
        return table

    def cast_rows(self, table: pa.Table, lines: int) -> CastRows | None:
        """Rows and the cells that do not fit; None where what was read cannot be trusted."""
        if table.num_rows != lines or not self._is_complete(table):
            return None
        if any(is_beyond(table[name]) for name in self._schema.names):
            return None
        return self._caster.cast(self._columns(table), lines)

    def _is_complete(self, table: pa.Table) -> bool:
        """No name in another case, no field missing that must be there."""
        if self._insensitive:
            known = set(self._schema.names)
            for name in table.schema.names:
                if name not in known and name.casefold() in self._folded:
                    return False
        if self._format.missing_field == "error":
            return all(not table[name].null_count for name in self._schema.names)
        return True

    def _columns(self, table: pa.Table) -> list[pa.Array | None]:
        columns: list[pa.Array | None] = []
        for name, field in zip(self._names, self._fields, strict=True):
            if field.name not in self._wanted:
                columns.append(None)
                continue
            column = one_chunk(table.column(name))
            columns.append(self._without_nulls(column))
        return columns

    def _without_nulls(self, column: pa.Array) -> pa.Array:
        if not self._format.null_if or not pa.types.is_string(column.type):
            return column
        marks = pa.array(self._format.null_if, pa.string())
        is_mark = pc.is_in(column, value_set=marks)
        return pc.if_else(is_mark, pa.scalar(None, pa.string()), column)


def _first_null(table: pa.Table) -> int | None:
    """The first row without any value; nearly always some column has no NULL, and this is free."""
    if not table.columns or not all(column.null_count for column in table.columns):
        return None
    empty = reduce(pc.and_, (pc.is_null(column) for column in table.columns))
    row: int = pc.index(empty, True).as_py()
    return None if row < 0 else row


def _quick_type(kind: pa.DataType) -> pa.DataType:
    """Times are read as text and cast strictly; other types pyarrow reads as strictly as we do."""
    return pa.string() if pa.types.is_temporal(kind) or pa.types.is_binary(kind) else kind


def _double_for(kind: pa.DataType) -> pa.DataType:
    return pa.float64() if pa.types.is_decimal(kind) else kind


def _is_read_strictly(kind: pa.DataType) -> bool:
    """Inside nested types pyarrow reads no maps, and takes moments without a zone for UTC."""
    if not pa.types.is_nested(kind):
        return True
    if not (pa.types.is_struct(kind) or pa.types.is_list(kind)):
        return False
    parts = [kind.field(index).type for index in range(kind.num_fields)]
    return all(part == _quick_type(part) and _is_read_strictly(part) for part in parts)
