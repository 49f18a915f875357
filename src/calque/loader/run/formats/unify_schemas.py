"""Schemas of several files become one that holds the rows of all."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import pyarrow as pa

from calque.loader.run.formats.cast.numerals import Numeral, numeral_in


def unify_schemas(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """Columns in the order they are met, each as wide as its widest; every one nullable.

    Names that differ by case alone are one column, spelled as it was met first.
    """
    return pa.schema(
        [pa.field(field.name, settle_type(field.type)) for field in merge_schemas(schemas)]
    )


def merge_schemas(schemas: Sequence[pa.Schema]) -> pa.Schema:
    """The same with types that are not settled: more may come to it."""
    names: dict[str, str] = {}
    found: dict[str, list[pa.DataType]] = {}
    for schema in schemas:
        for field in schema:
            name = names.setdefault(field.name.casefold(), field.name)
            found.setdefault(name, []).append(field.type)
    return pa.schema([pa.field(name, reduce(widest, kinds)) for name, kinds in found.items()])


def widest(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """A type that holds the values of both; text where nothing else does."""
    return _wider(left, right) or _wider(right, left) or _merge(left, right) or pa.string()


def settle_type(kind: pa.DataType) -> pa.DataType:
    """The type that a table keeps: microseconds, plain text, no dictionary, no null type."""
    if isinstance(kind, Numeral):
        return kind.narrowest_type
    if pa.types.is_null(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_dictionary(kind):
        return settle_type(kind.value_type)
    if pa.types.is_decimal(kind) and kind.bit_width != 128:
        wide = kind.precision > 38
        return pa.string() if wide else pa.decimal128(kind.precision, kind.scale)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", "UTC" if kind.tz else None)
    if pa.types.is_time(kind):
        return pa.time64("us")
    if pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return pa.binary()
    if pa.types.is_date64(kind):
        return pa.date32()
    if pa.types.is_unsigned_integer(kind):
        return _signed_type(kind)
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(settle_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, settle_type(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(settle_type(kind.key_type), settle_type(kind.item_type))
    return kind


def _wider(small: pa.DataType, large: pa.DataType) -> pa.DataType | None:
    """``large`` if it holds every value of ``small``."""
    if small is large or small == large or pa.types.is_null(small):
        return large
    if pa.types.is_integer(small) and pa.types.is_integer(large):
        return large if small.bit_width < large.bit_width else None
    if pa.types.is_float32(small) and pa.types.is_float64(large):
        return large
    if pa.types.is_date(small) and pa.types.is_timestamp(large) and not large.tz:
        return large
    if pa.types.is_timestamp(small) and pa.types.is_timestamp(large):
        return large if bool(small.tz) == bool(large.tz) else None
    if pa.types.is_decimal(small) and pa.types.is_decimal(large):
        return _wider_decimal(small, large)
    return None


def _wider_decimal(small: pa.DataType, large: pa.DataType) -> pa.DataType | None:
    whole = large.precision - large.scale >= small.precision - small.scale
    return large if whole and large.scale >= small.scale else None


def _merge(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    exact = [numeral for numeral in map(numeral_in, (left, right)) if numeral is not None]
    if len(exact) == 2:
        return exact[0].merge(exact[1])
    if len(exact) == 1 and (pa.types.is_floating(left) or pa.types.is_floating(right)):
        return pa.float64() if exact[0].in_double else None
    if pa.types.is_list(left) and pa.types.is_list(right):
        return pa.list_(widest(left.value_type, right.value_type))
    if pa.types.is_struct(left) and pa.types.is_struct(right):
        return pa.struct(list(_unify_structs(left, right)))
    return None


def _unify_structs(left: pa.DataType, right: pa.DataType) -> pa.Schema:
    names = [*(field.name for field in left), *(field.name for field in right)]
    fields = []
    for name in dict.fromkeys(names):
        kinds = [side.field(name).type for side in (left, right) if side.get_field_index(name) >= 0]
        fields.append(pa.field(name, reduce(widest, kinds)))
    return pa.schema(fields)


def _signed_type(kind: pa.DataType) -> pa.DataType:
    """The signed type with room for every value; the largest becomes a decimal."""
    return {8: pa.int16(), 16: pa.int32(), 32: pa.int64()}.get(kind.bit_width, pa.decimal128(20, 0))
