"""Data files and schemas in the words of Iceberg."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pyarrow as pa
from pyiceberg.conversions import partition_to_py, to_bytes
from pyiceberg.expressions.literals import literal
from pyiceberg.schema import Schema
from pyiceberg.types import (
    BinaryType,
    DateType,
    FixedType,
    PrimitiveType,
    StringType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from calque.loader.commit.tables.stats import PREFIX, text_above
from calque.loader.model.data_file import ColumnStats, DataFile


def file_stats(file: DataFile, schema: Schema) -> dict[str, dict[str, Any]]:
    """Counts and bounds by field id, bounds as hexadecimal text."""
    values: dict[str, int] = {}
    nulls: dict[str, int] = {}
    low: dict[str, str] = {}
    high: dict[str, str] = {}
    known = {field.name: field for field in schema.fields}
    for name, column in file.columns.items():
        field = known.get(name)
        if field is None or not isinstance(field.field_type, PrimitiveType):
            continue
        number = str(field.field_id)
        values[number], nulls[number] = file.rows, column.nulls
        bounds = _bounds(field.field_type, column)
        if bounds is not None:
            low[number], high[number] = bounds
    return {"values": values, "nulls": nulls, "low": low, "high": high}


def _bounds(kind: PrimitiveType, column: ColumnStats) -> tuple[str, str] | None:
    low, high = column.low, column.high
    if low is None or high is None or isinstance(kind, BinaryType | FixedType | UUIDType):
        return None
    if isinstance(kind, StringType):
        if not isinstance(low, str):
            return None
        low, high = low[:PREFIX], text_above(high)
    try:
        return to_bytes(kind, low).hex(), to_bytes(kind, high).hex()
    except (TypeError, ValueError, OverflowError, AttributeError):
        return None  # a bound is help for readers, never a must


def partition_value(kind: PrimitiveType, text: str) -> Any:
    """A partition value as Iceberg keeps it, from how it is spelled in a manifest of ours."""
    if isinstance(kind, StringType):
        return text
    if isinstance(kind, DateType | TimeType):
        return literal(text).to(kind).value
    if isinstance(kind, TimestampType):
        return literal(text.replace(" ", "T")).to(kind).value
    if isinstance(kind, TimestamptzType):
        moment = text.replace(" ", "T").removesuffix("+00:00")
        return literal(moment + "+00:00").to(kind).value
    return partition_to_py(kind, text)


def by_field_id(counts: Mapping[str, int]) -> dict[int, int]:
    """Counts by field id, as they were before JSON made the ids text."""
    return {int(number): count for number, count in counts.items()}


def bounds_as_bytes(bounds: Mapping[str, str]) -> dict[int, bytes]:
    """Bounds by field id, as they were before JSON."""
    return {int(number): bytes.fromhex(bound) for number, bound in bounds.items()}


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Without the large variants that pyiceberg asks for: Parquet has no such difference."""
    return pa.schema([_field(field) for field in schema])


def _field(field: pa.Field[Any]) -> pa.Field[Any]:
    return field.with_type(_type(field.type))


def _type(kind: Any) -> pa.DataType:
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_large_list(kind) or pa.types.is_list(kind):
        return pa.list_(_field(kind.value_field))
    if pa.types.is_struct(kind):
        return pa.struct([_field(kind.field(index)) for index in range(kind.num_fields)])
    if pa.types.is_map(kind):
        pair: Any = (_field(kind.key_field), _field(kind.item_field))
        return cast(pa.DataType, pa.map_(*pair))
    return cast(pa.DataType, kind)
