"""Strict casts: a value arrives in its column unchanged, or the cell is refused with a reason.

No rounding, no overflow, no truncation; decimals are exact; an empty string is not NULL. Whole
columns are cast at once. Only where that fails are single cells looked at, so that clean data pays
nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from calque.loader.request.type_names import text_of_type
from calque.loader.run.formats.cast import text as text_cast
from calque.loader.run.formats.cast.result import CastResult, refuse_all, salvage
from calque.loader.run.formats.cast.rules import CastRules
from calque.loader.run.formats.refusal import Code


def cast_column(values: pa.Array, target: pa.DataType, rules: CastRules) -> CastResult:
    """``values`` as ``target``; refused cells are null in the result and named beside it."""
    source = values.type
    if source == target:
        return CastResult(values)
    if pa.types.is_dictionary(source):
        return cast_column(values.dictionary_decode(), target, rules)
    if pa.types.is_null(source):
        return CastResult(pa.nulls(len(values), target))
    if _is_text(source):
        return text_cast.cast_text(values, target, rules)
    cast = _cast_for(source, target, rules)
    if cast is None:
        return _refuse_kind(values, target)
    return _cast_or_salvage(values, target, cast)


def fits_unchanged(source: pa.DataType, target: pa.DataType) -> bool:
    """Every value of ``source`` has its place in ``target``: the widenings a reader may make."""
    if source == target or pa.types.is_null(source):
        return True
    if pa.types.is_integer(source) and pa.types.is_integer(target):
        return _int_range_fits(source, target)
    if pa.types.is_floating(source) and pa.types.is_floating(target):
        return bool(source.bit_width <= target.bit_width)
    if _is_text(source) and _is_text(target):
        return True
    if pa.types.is_decimal(source) and pa.types.is_decimal(target):
        whole = target.precision - target.scale >= source.precision - source.scale
        return bool(whole and target.scale >= source.scale)
    return False


def _cast_or_salvage(
    values: pa.Array, target: pa.DataType, cast: Callable[[pa.Array], pa.Array]
) -> CastResult:
    try:
        return CastResult(cast(values))
    except pa.ArrowInvalid:
        why = f"does not fit {text_of_type(target)} unchanged"
        return salvage(values, target, cast, Code.OUT_OF_RANGE, why)
    except pa.ArrowNotImplementedError:
        return _refuse_kind(values, target)


def _refuse_kind(values: pa.Array, target: pa.DataType) -> CastResult:
    why = f"{text_of_type(values.type)} does not become {text_of_type(target)}"
    return refuse_all(values, target, Code.INVALID_VALUE, why)


def _cast_for(
    source: pa.DataType, target: pa.DataType, rules: CastRules
) -> Callable[[pa.Array], pa.Array] | None:
    if fits_unchanged(source, target) or _is_text(target):
        return lambda values: pc.cast(values, target)
    if _is_number(source) and _is_number(target):
        return lambda values: _cast_number(values, target)
    if pa.types.is_timestamp(source) and pa.types.is_timestamp(target):
        return _timestamp_cast(source, target, rules)
    if pa.types.is_date(source) and pa.types.is_timestamp(target):
        return _date_to_timestamp(target, rules)
    if pa.types.is_nested(source) and pa.types.is_nested(target):
        return lambda values: _cast_nested(values, target, rules)
    temporal = pa.types.is_temporal(source) and pa.types.is_temporal(target)
    binary = _is_bytes(source) and _is_bytes(target)
    return (lambda values: _cast_there_and_back(values, target)) if temporal or binary else None


def _cast_number(values: pa.Array, target: pa.DataType) -> pa.Array:
    if pa.types.is_decimal(target) and pa.types.is_integer(values.type):
        values = pc.cast(values, pa.decimal128(21 if values.type.bit_width > 32 else 11, 0))
    return _cast_there_and_back(values, target)


def _cast_there_and_back(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Cast, and cast back: what does not come back the same was changed on the way."""
    there = pc.cast(values, target, safe=True)
    back = pc.cast(there, values.type, safe=True)
    same = pc.equal(back, values)
    if pa.types.is_floating(values.type):
        same = pc.or_(same, pc.is_nan(values))
    if pc.all(same, skip_nulls=True).as_py() is False:
        raise pa.ArrowInvalid("the value would be changed")
    return there


def _cast_nested(values: pa.Array, target: pa.DataType, rules: CastRules) -> pa.Array:
    """A list, map or struct whose parts are cast as strictly as columns are."""

    def part(inner: pa.Array, kind: pa.DataType) -> pa.Array:
        cells = cast_column(inner, kind, rules)
        if cells.refused:
            raise pa.ArrowInvalid("a part of the value would be changed")
        return cells.values

    source, absent = values.type, values.is_null()
    if pa.types.is_struct(source) and pa.types.is_struct(target):
        inner = dict(zip([field.name for field in source], values.flatten(), strict=True))
        parts = [part(inner.get(field.name, pa.nulls(len(values))), field.type) for field in target]
        return pa.StructArray.from_arrays(parts, fields=list(target), mask=absent)
    if pa.types.is_map(source) and pa.types.is_map(target):
        values = values.take(
            pa.array(range(len(values)), pa.int64())
        )  # a slice would show all keys
        keys, items = part(values.keys, target.key_type), part(values.items, target.item_type)
        return pa.MapArray.from_arrays(values.offsets, keys, items, type=target, mask=absent)
    if not (_is_list(source) and pa.types.is_list(target)):
        return pc.cast(values, target, safe=True)
    counts = pc.fill_null(pc.list_value_length(values), 0)
    ends = pc.cumulative_sum(pc.cast(counts, pa.int32()))
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    inner = part(values.flatten(), target.value_type)
    return pa.ListArray.from_arrays(offsets, inner, type=target, mask=absent)


def _timestamp_cast(
    source: pa.DataType, target: pa.DataType, rules: CastRules
) -> Callable[[pa.Array], pa.Array] | None:
    if bool(source.tz) == bool(target.tz):
        return lambda values: pc.cast(values, target, safe=True)
    if target.tz and rules.time_zone:
        zone = rules.time_zone
        return lambda values: pc.cast(pc.assume_timezone(values, zone), target, safe=True)
    return None


def _date_to_timestamp(
    target: pa.DataType, rules: CastRules
) -> Callable[[pa.Array], pa.Array] | None:
    if not target.tz:
        return lambda values: pc.cast(values, target, safe=True)
    if not rules.time_zone:
        return None
    zone = rules.time_zone
    naive = pa.timestamp(target.unit)
    return lambda values: pc.cast(pc.assume_timezone(pc.cast(values, naive), zone), target)


def _int_range_fits(source: pa.DataType, target: pa.DataType) -> bool:
    if pa.types.is_signed_integer(source) and not pa.types.is_signed_integer(target):
        return False
    if pa.types.is_unsigned_integer(source) and pa.types.is_signed_integer(target):
        return bool(source.bit_width < target.bit_width)
    return bool(source.bit_width <= target.bit_width)


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def _is_list(kind: pa.DataType) -> bool:
    fixed = pa.types.is_fixed_size_list(kind)
    return bool(fixed or pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
    )
