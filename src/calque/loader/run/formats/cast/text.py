"""Strict casts of text: what a CSV field or a JSON string becomes in a typed column."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from binascii import unhexlify
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from calque.loader.request.type_names import text_of_type
from calque.loader.run.formats.cast.arrow_quirks import MOST_DIGITS, room_before_point
from calque.loader.run.formats.cast.explain import NUMBER, explain_cells
from calque.loader.run.formats.cast.python_values import column_of
from calque.loader.run.formats.cast.result import (
    CastResult,
    RefusedCell,
    failing_rows,
    show_cell,
    where_false,
    without,
)
from calque.loader.run.formats.cast.rules import CastRules
from calque.loader.run.formats.refusal import Code

_INTEGER = r"^-?[0-9]+$"


_FLOAT = NUMBER + r"|^[+-]?(?i:inf|infinity|nan)$"


_INFINITE = r"^\s*[+-]?(?i:inf|infinity)\s*$"


_ZONED = r"([zZ]|[+-][0-9]{2}(:?[0-9]{2})?)$"


_HAS_CLOCK = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]"


TextCast = Callable[[pa.Array, pa.DataType, CastRules], CastResult]


def cast_text(values: pa.Array, target: pa.DataType, rules: CastRules) -> CastResult:
    """Text as ``target``; see the module for what is accepted."""
    if pa.types.is_string(target) or pa.types.is_large_string(target):
        return CastResult(pc.cast(values, target))
    for is_kind, cast in _CASTS:
        if is_kind(target):
            return cast(values, target, rules)
    return _cast_json(values, target)


def _cast_integer(values: pa.Array, target: pa.DataType, rules: CastRules) -> CastResult:
    def cast(text: pa.Array) -> pa.Array:
        for mark in ("x", "X"):
            if pc.any(pc.match_substring(text, mark)).as_py():
                raise pa.ArrowInvalid("pyarrow would read 0x1F as a number")
        return pc.cast(text, target)

    return _cast_by_pattern(values, target, _INTEGER, cast, rules)


def _cast_float(values: pa.Array, target: pa.DataType, rules: CastRules) -> CastResult:
    values = _spell_nan(values, rules)
    cells = _cast_by_pattern(values, target, _FLOAT, lambda text: pc.cast(text, target), rules)
    infinite = pc.and_(pc.is_inf(cells.values), pc.invert(_matches(values, _INFINITE)))
    if not pc.any(infinite).as_py():
        return cells
    rows = pc.indices_nonzero(pc.fill_null(infinite, False)).to_pylist()
    why = f"is beyond the range of {text_of_type(target)}"
    found = [RefusedCell(row, show_cell(values[row]), Code.OUT_OF_RANGE, why) for row in rows]
    refused = sorted((*cells.refused, *found), key=lambda refusal: refusal.row)
    return CastResult(without(cells.values, rows), tuple(refused))


def _cast_decimal(values: pa.Array, target: pa.DataType, rules: CastRules) -> CastResult:
    pointed = _use_point(values, rules)
    if not _may_mislead(pointed, target):
        return _cast_by_pattern(values, target, NUMBER, lambda text: pc.cast(text, target), rules)
    trimmed = pc.ascii_trim_whitespace(pointed)
    rows = where_false(_matches(trimmed, NUMBER))
    made = column_of(without(trimmed, rows).to_pylist(), target)
    refused = (*explain_cells(values, rows, target), *made.refused)
    return CastResult(made.values, tuple(sorted(refused, key=lambda refusal: refusal.row)))


def _cast_boolean(values: pa.Array, target: pa.DataType, rules: CastRules) -> CastResult:
    true = pc.is_in(values, value_set=pa.array(rules.true_values, values.type))
    false = pc.is_in(values, value_set=pa.array(rules.false_values, values.type))
    known = pc.or_(pc.or_(true, false), pc.is_null(values))
    rows = where_false(known)
    answer = pc.if_else(pc.is_null(values), pa.scalar(None, pa.bool_()), true)
    return CastResult(without(answer, rows), explain_cells(values, rows, target))


def _cast_date(values: pa.Array, target: pa.DataType, rules: CastRules) -> CastResult:
    if rules.date_format is not None:
        return _cast_by_format(values, target, rules.date_format)
    return _cast_by_halves(values, target, lambda text: pc.cast(pc.cast(text, pa.date32()), target))


def _cast_timestamp(values: pa.Array, target: pa.DataType, rules: CastRules) -> CastResult:
    if rules.timestamp_format is not None:
        return _cast_by_format(values, target, rules.timestamp_format, rules.time_zone)
    if target.tz is None:
        return _cast_by_halves(values, target, lambda text: pc.cast(text, target))
    clock = _matches(values, _HAS_CLOCK)
    zoned = pc.and_(clock, _matches(values, _ZONED))
    if pc.all(zoned, skip_nulls=True).as_py():
        return _cast_by_halves(values, target, lambda text: pc.cast(text, target))
    return _cast_mixed_zones(values, target, zoned, rules)


def _cast_mixed_zones(
    values: pa.Array, target: pa.DataType, zoned: pa.Array, rules: CastRules
) -> CastResult:
    absent = pa.scalar(None, values.type)
    with_zone = pc.if_else(zoned, values, absent)
    naive = pc.if_else(zoned, absent, values)
    named = _cast_by_halves(with_zone, target, lambda text: pc.cast(text, target))
    if rules.time_zone is None:
        rows = pc.indices_nonzero(pc.is_valid(naive)).to_pylist()
        rest = CastResult(pa.nulls(len(values), target), explain_cells(values, rows, target))
    else:
        rest = _cast_by_halves(
            naive, target, _cast_in_zone(rules.time_zone, target), rules.time_zone
        )
    refused = sorted((*named.refused, *rest.refused), key=lambda refusal: refusal.row)
    return CastResult(pc.coalesce(named.values, rest.values), tuple(refused))


def _cast_in_zone(zone: str, target: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    plain = pa.timestamp(target.unit)
    return lambda text: pc.cast(pc.assume_timezone(pc.cast(text, plain), zone), target)


def _cast_time(values: pa.Array, target: pa.DataType, rules: CastRules) -> CastResult:
    if rules.time_format is not None:
        return _cast_by_format(values, target, rules.time_format)

    def cast(text: pa.Array) -> pa.Array:
        dated = pc.binary_join_element_wise("1970-01-01T", text, "")
        return pc.cast(pc.cast(dated, pa.timestamp(target.unit)), target)

    return _cast_by_halves(values, target, cast)


def _cast_binary(values: pa.Array, target: pa.DataType, rules: CastRules) -> CastResult:
    if rules.binary_format != "utf8":
        return _cast_encoded(values, target, _DECODE[rules.binary_format])
    return _cast_by_halves(values, target, lambda text: pc.cast(text, target))


def _cast_encoded(
    values: pa.Array, target: pa.DataType, decode: Callable[[str], bytes]
) -> CastResult:
    made: list[bytes | None] = []
    rows: list[int] = []
    for row, text in enumerate(values.to_pylist()):
        try:
            made.append(None if text is None else decode(text.strip()))
        except ValueError:
            made.append(None)
            rows.append(row)
    return CastResult(pa.array(made, target), explain_cells(values, rows, target))


_DECODE: Mapping[str, Callable[[str], bytes]] = {
    "hex": unhexlify,
    "base64": lambda text: b64decode(text, validate=True),
}


def _cast_json(values: pa.Array, target: pa.DataType) -> CastResult:
    """A list, map or struct is spelled as JSON."""
    cells: list[object] = []
    rows: list[int] = []
    for row, text in enumerate(values.to_pylist()):
        try:
            cells.append(None if text is None else _load_json(text))
        except (ValueError, ArithmeticError, RecursionError):
            cells.append(None)
            rows.append(row)
    made = column_of(cells, target)
    refused = (*explain_cells(values, rows, target), *made.refused)
    return CastResult(made.values, tuple(sorted(refused, key=lambda refusal: refusal.row)))


def _load_json(text: str) -> object:
    return json.loads(
        text, parse_float=Decimal, parse_constant=Decimal, object_pairs_hook=_refuse_doubled_keys
    )


def _refuse_doubled_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key stands there twice")
    return made


def numbers_in(values: pa.Array, rules: CastRules) -> pa.Array | None:
    """Text that is all numbers, with a point and without spaces; None where some is not."""
    trimmed = pc.ascii_trim_whitespace(_use_point(_spell_nan(values, rules), rules))
    return trimmed if pc.all(_matches(trimmed, _FLOAT)).as_py() else None


def _cast_by_pattern(
    values: pa.Array,
    target: pa.DataType,
    pattern: str,
    cast: Callable[[pa.Array], pa.Array],
    rules: CastRules,
) -> CastResult:
    """Cast the column; on failure set apart what does not even look right, then halve."""
    pointed = _remove_separators(values, rules)
    if not pa.types.is_integer(target):
        pointed = _use_point(values, rules)
    try:
        return CastResult(cast(pointed))
    except pa.ArrowInvalid:
        trimmed = pc.ascii_trim_whitespace(pointed)
    rows = _find_unlike(trimmed, pattern)
    likely = without(trimmed, rows)
    try:
        return CastResult(cast(likely), explain_cells(values, rows, target))
    except pa.ArrowInvalid:
        rows = sorted({*rows, *failing_rows(likely, cast)})
    return CastResult(cast(without(trimmed, rows)), explain_cells(values, rows, target))


def _cast_by_halves(
    values: pa.Array,
    target: pa.DataType,
    cast: Callable[[pa.Array], pa.Array],
    zone: str | None = None,
) -> CastResult:
    try:
        return CastResult(cast(values))
    except pa.ArrowInvalid:
        trimmed = pc.ascii_trim_whitespace(values)
    rows = list(failing_rows(trimmed, cast))
    return CastResult(cast(without(trimmed, rows)), explain_cells(values, rows, target, zone))


def _cast_by_format(
    values: pa.Array, target: pa.DataType, format: str, zone: str | None = None
) -> CastResult:
    if "%f" in format:  # which the column-wise parser does not know
        parsed = _parse_one_by_one(values, format)
    else:
        parsed = pc.strptime(values, format=format, unit="us", error_is_null=True)
        parsed = without(parsed, _find_rolled_over(values, parsed, format))
    missed = pc.and_(pc.is_valid(values), pc.is_null(parsed))
    rows = pc.indices_nonzero(missed).to_pylist()
    if pa.types.is_timestamp(target) and bool(target.tz) != bool(parsed.type.tz):
        if zone is None or not target.tz:
            rows = pc.indices_nonzero(pc.is_valid(values)).to_pylist()
            return CastResult(pa.nulls(len(values), target), explain_cells(values, rows, target))
        # An hour that the clocks skip or repeat is no moment.
        rows = sorted({*rows, *failing_rows(parsed, lambda part: pc.assume_timezone(part, zone))})
        parsed = pc.assume_timezone(without(parsed, rows), zone)
    return CastResult(pc.cast(parsed, target), explain_cells(values, rows, target))


def _parse_one_by_one(values: pa.Array, format: str) -> pa.Array:
    moments = [None if text is None else _parse_moment(text, format) for text in values.to_pylist()]
    return pa.array(moments, pa.timestamp("us", "UTC" if "%z" in format else None))


def _parse_moment(text: str, format: str) -> datetime | None:
    try:
        return datetime.strptime(text.strip(), format)
    except ValueError:
        return None


def _find_rolled_over(values: pa.Array, parsed: pa.Array, format: str) -> list[int]:
    """strptime makes 1 March of 30 February: days 1 to 3 are looked at again, exactly."""
    early = pc.fill_null(pc.less_equal(pc.day(parsed), 3), False)
    rows = pc.indices_nonzero(early).to_pylist()
    return [row for row in rows if _parse_moment(values[row].as_py(), format) is None]


def _remove_separators(values: pa.Array, rules: CastRules) -> pa.Array:
    """Numbers without the separators of their thousands; what is not grouped by three stays."""
    mark = rules.thousands_separator
    if mark is None:
        return values
    point, comma = re.escape(rules.decimal_point), re.escape(mark)
    grouped = _matches(values, rf"^\s*[+-]?[0-9]{{1,3}}({comma}[0-9]{{3}})+({point}[0-9]*)?\s*$")
    return pc.if_else(grouped, pc.replace_substring(values, mark, ""), values)


def _spell_nan(values: pa.Array, rules: CastRules) -> pa.Array:
    """NaN in its usual spelling, where another one stands for it."""
    if rules.nan_display is None:
        return values
    is_nan = pc.equal(pc.ascii_trim_whitespace(values), rules.nan_display)
    return pc.if_else(is_nan, "NaN", values)


def _use_point(values: pa.Array, rules: CastRules) -> pa.Array:
    values = _remove_separators(values, rules)
    if rules.decimal_point == ".":
        return values
    swapped = pc.replace_substring(values, ".", "\x00")
    return pc.replace_substring(swapped, rules.decimal_point, ".")


def _find_unlike(values: pa.Array, pattern: str) -> list[int]:
    """The rows that do not match; plain digits, which always do, are told apart more quickly."""
    rows = where_false(pc.ascii_is_decimal(values))
    rest = values.take(pa.array(rows, pa.int64()))
    return [rows[at] for at in where_false(_matches(rest, pattern))]


def _may_mislead(values: pa.Array, target: pa.DataType) -> bool:
    """Whether there may be a decimal that pyarrow gets wrong: see ``arrow_quirks``."""
    longest = pc.max(pc.binary_length(values)).as_py()
    if longest is None or longest > MOST_DIGITS:
        return longest is not None
    text = values.buffers()[2].to_pybytes()
    if b"e" in text or b"E" in text:
        return True
    room = room_before_point(target.scale)
    too_many = rf"^\s*[+-]?[0-9]{{{room + 1}}}"
    return longest > room and bool(pc.any(_matches(values, too_many)).as_py())


def _matches(values: pa.Array, pattern: str) -> pa.Array:
    return pc.match_substring_regex(values, pattern)


_CASTS: tuple[tuple[Callable[[pa.DataType], bool], TextCast], ...] = (
    (pa.types.is_integer, _cast_integer),
    (pa.types.is_floating, _cast_float),
    (pa.types.is_decimal, _cast_decimal),
    (pa.types.is_boolean, _cast_boolean),
    (pa.types.is_date, _cast_date),
    (pa.types.is_timestamp, _cast_timestamp),
    (pa.types.is_time, _cast_time),
    (pa.types.is_binary, _cast_binary),
    (pa.types.is_large_binary, _cast_binary),
)
