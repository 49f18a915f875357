"""Parsed columns become rows of the table: cast, checked, refused rows set apart."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pyarrow as pa

from calque.loader.run.formats.cast.columns import cast_column
from calque.loader.run.formats.cast.python_values import plain
from calque.loader.run.formats.cast.refused_cells import Cells, Refusal, all_but
from calque.loader.run.formats.cast.rules import CastRules
from calque.loader.run.formats.reject import Code, Misfit, cut


@dataclass(frozen=True, slots=True)
class Shaped:
    """Rows that fit, and for each row that does not its first misfit, in row order."""

    rows: pa.RecordBatch
    misfits: tuple[Misfit, ...] = ()


@dataclass(frozen=True, slots=True)
class Shaper:
    """Casts columns to ``schema``.

    With ``rescue`` misfits go there as JSON and the row stays; so does what has no column.
    """

    schema: pa.Schema
    rules: CastRules
    rescue: str | None = None
    extra: tuple[str, ...] = ()
    """Names of columns that come behind those of the schema and are rescued whole."""

    def shape(
        self,
        columns: Sequence[pa.Array | Cells | None],
        count: int,
        extras: Mapping[int, Mapping[str, Any]] = MappingProxyType({}),
    ) -> Shaped:
        """``columns`` in the order of the schema; None is a column of NULL.

        A column may come with cells refused already. ``extras``: of single rows, by name, what
        fills no column.
        """
        arrays: list[pa.Array] = []
        first: dict[int, Misfit] = {}
        rescued: dict[int, dict[str, Any]] = {row: dict(one) for row, one in extras.items()}
        width = len(self.schema)
        for name, column in zip(self.extra, columns[width:], strict=True):
            _rescue_whole(name, column, rescued)
        for field, column in zip(self.schema, columns[:width], strict=True):
            cells = _cells(column, field, count, self.rules)
            for refusal in cells.refused:
                if self.rescue is not None and field.nullable:
                    rescued.setdefault(refusal.row, {})[field.name] = refusal.value
                elif refusal.row not in first:
                    first[refusal.row] = _misfit(refusal, field)
            arrays.append(cells.values)
        if self.rescue is not None:
            arrays.append(_rescue_column(rescued, count))
        return _left(self._batch(arrays), first)

    def _batch(self, arrays: list[pa.Array]) -> pa.RecordBatch:
        schema = self.schema
        if self.rescue is not None:
            schema = schema.append(pa.field(self.rescue, pa.string()))
        fields = [field.with_nullable(True) for field in schema]
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _cells(column: pa.Array | Cells | None, field: pa.Field, count: int, rules: CastRules) -> Cells:
    if column is None:
        return Cells(pa.nulls(count, field.type))
    given = column if isinstance(column, Cells) else Cells(column)
    cells = cast_column(given.values, field.type, rules)
    if given.refused:
        refused = sorted((*given.refused, *cells.refused), key=lambda refusal: refusal.row)
        cells = Cells(cells.values, tuple(refused))
    if field.nullable or not cells.values.null_count:
        return cells
    return _no_nulls(cells, given.values)


def _no_nulls(cells: Cells, column: pa.Array) -> Cells:
    from_null = [row for row in range(len(column)) if not column[row].is_valid]
    known = {refusal.row: refusal for refusal in cells.refused}
    for row in from_null:
        known.setdefault(row, _null_refusal(row))
    return Cells(cells.values, tuple(known[row] for row in sorted(known)))


def _null_refusal(row: int) -> Refusal:
    return Refusal(row, None, Code.NULL_NOT_ALLOWED, "is NULL, which the column does not allow")


def _misfit(refusal: Refusal, field: pa.Field) -> Misfit:
    return Misfit(
        refusal.row, field.name, str(field.type), cut(refusal.value), refusal.code, refusal.message
    )


def _rescue_whole(
    name: str, column: pa.Array | Cells | None, rescued: dict[int, dict[str, Any]]
) -> None:
    assert isinstance(column, pa.Array), "extra columns come as the file has them"
    for row, value in enumerate(column.to_pylist()):
        if value is not None:
            rescued.setdefault(row, {})[name] = value


def _rescue_column(rescued: dict[int, dict[str, Any]], count: int) -> pa.Array:
    if not rescued:
        return pa.nulls(count, pa.string())
    texts = [
        json.dumps(plain(rescued[row]), ensure_ascii=False) if row in rescued else None
        for row in range(count)
    ]
    return pa.array(texts, pa.string())


def _left(batch: pa.RecordBatch, first: dict[int, Misfit]) -> Shaped:
    if not first:
        return Shaped(batch)
    return Shaped(
        batch.filter(all_but(first, batch.num_rows)), tuple(first[row] for row in sorted(first))
    )
