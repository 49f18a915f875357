"""Column statistics out of a Parquet footer."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from calque.loader.model.data_file import ColumnStats

_FLOATS = ("FLOAT", "DOUBLE")


def columns_with_nan(rows: pa.Table | pa.RecordBatch) -> set[str]:
    """The columns of floats that hold a NaN somewhere."""
    return {
        field.name
        for field, column in zip(rows.schema, rows.columns, strict=True)
        if pa.types.is_floating(field.type) and pc.any(pc.is_nan(column)).as_py()
    }


def column_stats(
    metadata: pq.FileMetaData, *, with_nan: Collection[str] | None = None
) -> dict[str, ColumnStats]:
    """For each plain column its nulls and, where every row group knows them, its bounds.

    Of a struct a footer tells only that it is NULL in no more rows than each of its fields.

    A footer's bounds pass over NaN, which engines sort below, above or beside all numbers: a column
    that may hold one has none. ``with_nan``: the columns that do; None where nobody looked.
    """
    found: dict[str, ColumnStats] = {}
    schema = metadata.schema.to_arrow_schema()
    for index in range(metadata.num_columns):
        name = metadata.schema.column(index).path
        stats = _column(metadata, index)
        if stats is None:
            continue
        if "." in name and name not in schema.names:
            struct = _struct_of(metadata.schema.column(index), schema)
            if struct is not None:
                known = found.get(struct, stats)
                found[struct] = ColumnStats(min(stats.nulls, known.nulls))
            continue
        may_be_nan = with_nan is None or name in with_nan
        if may_be_nan and metadata.schema.column(index).physical_type in _FLOATS:
            stats = ColumnStats(stats.nulls)
        found[name] = stats
    return found


def _struct_of(column: pq.ColumnSchema, schema: pa.Schema) -> str | None:
    """The struct of which it is a field; None where that is not sure, or values repeat."""
    if column.max_repetition_level:
        return None
    structs = [
        field.name
        for field in schema
        if pa.types.is_struct(field.type) and column.path.startswith(f"{field.name}.")
    ]
    return structs[0] if len(structs) == 1 else None


def _column(metadata: pq.FileMetaData, index: int) -> ColumnStats | None:
    nulls = 0
    lows: list[Any] = []
    highs: list[Any] = []
    bounded = True
    for group in range(metadata.num_row_groups):
        chunk = metadata.row_group(group).column(index)
        stats = chunk.statistics
        if stats is None or not stats.has_null_count:
            return None
        nulls += stats.null_count
        bounds = _bounds(stats)
        if bounds is not None:
            lows.append(bounds[0])
            highs.append(bounds[1])
        elif stats.null_count < chunk.num_values:
            bounded = False
    if not bounded or not lows:
        return ColumnStats(nulls)
    return ColumnStats(nulls, min(lows), max(highs))


def _bounds(stats: pq.Statistics) -> tuple[Any, Any] | None:
    """Least and greatest; None where there are none that Python can hold (the year 0, say)."""
    if not stats.has_min_max:
        return None
    try:
        return stats.min, stats.max
    except (ValueError, OverflowError):
        return None
