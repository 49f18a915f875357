"""Parsed columns become rows of the table: cast, checked, refused rows set apart."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from calque.loader.request.type_names import text_of_type
from calque.loader.run.formats.cast.columns import cast_column
from calque.loader.run.formats.cast.python_values import json_value
from calque.loader.run.formats.cast.result import CastResult, RefusedCell, all_but
from calque.loader.run.formats.cast.rules import CastRules
from calque.loader.run.formats.refusal import CellError, Code, shorten


@dataclass(frozen=True, slots=True)
class CastRows:
    """Rows that fit, and for each other row the first cell that does not, in row order."""

    rows: pa.RecordBatch
    cell_errors: tuple[CellError, ...] = ()


@dataclass(frozen=True, slots=True)
class RowCaster:
    """Casts columns to ``schema``.

    With ``rescue`` cells that do not fit go there as JSON and the row stays; so does what has no
    column.
    """

    schema: pa.Schema
    rules: CastRules
    rescue: str | None = None
    extra: tuple[str, ...] = ()
    """Names of columns that come behind those of the schema and are rescued whole."""

    def cast(
        self,
        columns: Sequence[pa.Array | CastResult | None],
        count: int,
        extras: Mapping[int, Mapping[str, Any]] = MappingProxyType({}),
    ) -> CastRows:
        """``columns`` in the order of the schema; None is a column of NULL.

        A column may come with cells refused already. ``extras``: of single rows, by name, what
        fills no column.
        """
        arrays: list[pa.Array] = []
        first: dict[int, CellError] = {}
        rescued: dict[int, dict[str, Any]] = {row: dict(one) for row, one in extras.items()}
        width = len(self.schema)
        for name, column in zip(self.extra, columns[width:], strict=True):
            _rescue_column_whole(name, column, rescued)
        for field, column in zip(self.schema, columns[:width], strict=True):
            cells = _cast_cells(column, field, count, self.rules)
            # A row has one error, that of its first bad column: reports count rows, not cells.
            for refusal in cells.refused:
                if self.rescue is not None and field.nullable:
                    rescued.setdefault(refusal.row, {})[field.name] = refusal.value
                elif refusal.row not in first:
                    first[refusal.row] = _cell_error(refusal, field)
            arrays.append(cells.values)
        if self.rescue is not None:
            arrays.append(_rescue_texts(rescued, count))
        return _keep_sound_rows(self._batch(arrays), first)

    def _batch(self, arrays: list[pa.Array]) -> pa.RecordBatch:
        schema = self.schema
        if self.rescue is not None:
            schema = schema.append(pa.field(self.rescue, pa.string()))
        fields = [field.with_nullable(True) for field in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _cast_cells(
    column: pa.Array | CastResult | None, field: pa.Field, count: int, rules: CastRules
) -> CastResult:
    if column is None:
        return CastResult(pa.nulls(count, field.type))
    given = column if isinstance(column, CastResult) else CastResult(column)
    cells = cast_column(given.values, field.type, rules)
    if given.refused:
        refused = sorted((*given.refused, *cells.refused), key=lambda refusal: refusal.row)
        cells = CastResult(cells.values, tuple(refused))
    if field.nullable or not cells.values.null_count:
        return cells
    return _refuse_nulls(cells, given.values)


def _refuse_nulls(cells: CastResult, column: pa.Array) -> CastResult:
    from_null = [row for row in range(len(column)) if not column[row].is_valid]
    known = {refusal.row: refusal for refusal in cells.refused}
    for row in from_null:
        known.setdefault(row, _refused_null(row))
    return CastResult(cells.values, tuple(known[row] for row in sorted(known)))


def _refused_null(row: int) -> RefusedCell:
    return RefusedCell(row, None, Code.NULL_NOT_ALLOWED, "is NULL, which the column does not allow")


def _cell_error(refusal: RefusedCell, field: pa.Field) -> CellError:
    return CellError(
        refusal.row,
        field.name,
        text_of_type(field.type),
        shorten(refusal.value),
        refusal.code,
        refusal.message,
    )


def _rescue_column_whole(
    name: str, column: pa.Array | CastResult | None, rescued: dict[int, dict[str, Any]]
) -> None:
    assert isinstance(column, pa.Array), "extra columns come as the file has them"
    for row, value in enumerate(column.to_pylist()):
        if value is not None:
            rescued.setdefault(row, {})[name] = value


def _rescue_texts(rescued: dict[int, dict[str, Any]], count: int) -> pa.Array:
    if not rescued:
        return pa.nulls(count, pa.string())
    texts = [
        json.dumps(json_value(rescued[row]), ensure_ascii=False) if row in rescued else None
        for row in range(count)
    ]
    return pa.array(texts, pa.string())


def _keep_sound_rows(batch: pa.RecordBatch, first: dict[int, CellError]) -> CastRows:
    if not first:
        return CastRows(batch)
    return CastRows(
        batch.filter(all_but(first, batch.num_rows)), tuple(first[row] for row in sorted(first))
    )
