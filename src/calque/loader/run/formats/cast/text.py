"""Strict casts of text: what a CSV field or a JSON string becomes in a typed column."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal, InvalidOperation

import pyarrow as pa
import pyarrow.compute as pc

from calque.loader.run.formats.cast.python_values import column_of, decimal_places
from calque.loader.run.formats.cast.refused_cells import (
    Cells,
    Refusal,
    failing_rows,
    shown,
    where_false,
    without,
)
from calque.loader.run.formats.cast.rules import CastRules
from calque.loader.run.formats.reject import Code

_INTEGER = r"^-?[0-9]+$"
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_FLOAT = _NUMBER + r"|^[+-]?(?i:inf|infinity|nan)$"
_MOST_DIGITS = 38
_INFINITE = r"^\s*[+-]?(?i:inf|infinity)\s*$"
_ZONED = r"([zZ]|[+-][0-9]{2}(:?[0-9]{2})?)$"
_HAS_CLOCK = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]"

TextCast = Callable[[pa.Array, pa.DataType, CastRules], Cells]


def cast_text(values: pa.Array, target: pa.DataType, rules: CastRules) -> Cells:
    """Text as ``target``; see the module for what is accepted."""
    if pa.types.is_string(target) or pa.types.is_large_string(target):
        return Cells(pc.cast(values, target))
    for is_kind, cast in _CASTS:
        if is_kind(target):
            return cast(values, target, rules)
    return _nested(values, target)


def _integer(values: pa.Array, target: pa.DataType, rules: CastRules) -> Cells:
    def cast(text: pa.Array) -> pa.Array:
        for mark in ("x", "X"):
            if pc.any(pc.match_substring(text, mark)).as_py():
                raise pa.ArrowInvalid("pyarrow would read 0x1F as a number")
        return pc.cast(text, target)

    return _by_pattern(values, target, _INTEGER, cast, rules)


def _float(values: pa.Array, target: pa.DataType, rules: CastRules) -> Cells:
    cells = _by_pattern(values, target, _FLOAT, lambda text: pc.cast(text, target), rules)
    infinite = pc.and_(pc.is_inf(cells.values), pc.invert(_matches(values, _INFINITE)))
    if not pc.any(infinite).as_py():
        return cells
    rows = pc.indices_nonzero(pc.fill_null(infinite, False)).to_pylist()
    found = [
        Refusal(row, shown(values[row]), Code.OUT_OF_RANGE, f"is beyond the range of {target}")
        for row in rows
    ]
    refused = sorted((*cells.refused, *found), key=lambda refusal: refusal.row)
    return Cells(without(cells.values, rows), tuple(refused))


def _decimal(values: pa.Array, target: pa.DataType, rules: CastRules) -> Cells:
    pointed = _point(values, rules)
    if not _may_mislead(pointed):
        return _by_pattern(values, target, _NUMBER, lambda text: pc.cast(text, target), rules)
    trimmed = pc.ascii_trim_whitespace(pointed)
    rows = where_false(_matches(trimmed, _NUMBER))
    made = column_of(without(trimmed, rows).to_pylist(), target)
    refused = (*_explain(values, rows, target), *made.refused)
    return Cells(made.values, tuple(sorted(refused, key=lambda refusal: refusal.row)))


def _boolean(values: pa.Array, target: pa.DataType, rules: CastRules) -> Cells:
    true = pc.is_in(values, value_set=pa.array(rules.true_values, values.type))
    false = pc.is_in(values, value_set=pa.array(rules.false_values, values.type))
    known = pc.or_(pc.or_(true, false), pc.is_null(values))
    rows = where_false(known)
    answer = pc.if_else(pc.is_null(values), pa.scalar(None, pa.bool_()), true)
    return Cells(without(answer, rows), _explain(values, rows, target))


def _date(values: pa.Array, target: pa.DataType, rules: CastRules) -> Cells:
    if rules.date_format is not None:
        return _by_format(values, target, rules.date_format)
    return _halved(values, target, lambda text: pc.cast(pc.cast(text, pa.date32()), target))


def _timestamp(values: pa.Array, target: pa.DataType, rules: CastRules) -> Cells:
    if rules.timestamp_format is not None:
        return _by_format(values, target, rules.timestamp_format, rules.time_zone)
    if target.tz is None:
        return _halved(values, target, lambda text: pc.cast(text, target))
    clock = _matches(values, _HAS_CLOCK)
    zoned = pc.and_(clock, _matches(values, _ZONED))
    if pc.all(zoned, skip_nulls=True).as_py():
        return _halved(values, target, lambda text: pc.cast(text, target))
    return _mixed_zones(values, target, zoned, rules)


def _mixed_zones(values: pa.Array, target: pa.DataType, zoned: pa.Array, rules: CastRules) -> Cells:
    absent = pa.scalar(None, values.type)
    with_zone = pc.if_else(zoned, values, absent)
    naive = pc.if_else(zoned, absent, values)
    named = _halved(with_zone, target, lambda text: pc.cast(text, target))
    if rules.time_zone is None:
        rows = pc.indices_nonzero(pc.is_valid(naive)).to_pylist()
        rest = Cells(pa.nulls(len(values), target), _explain(values, rows, target))
    else:
        rest = _halved(naive, target, _in_zone(rules.time_zone, target), rules.time_zone)
    refused = sorted((*named.refused, *rest.refused), key=lambda refusal: refusal.row)
    return Cells(pc.coalesce(named.values, rest.values), tuple(refused))


def _in_zone(zone: str, target: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    plain = pa.timestamp(target.unit)
    return lambda text: pc.cast(pc.assume_timezone(pc.cast(text, plain), zone), target)


def _time(values: pa.Array, target: pa.DataType, rules: CastRules) -> Cells:
    def cast(text: pa.Array) -> pa.Array:
        dated = pc.binary_join_element_wise("1970-01-01T", text, "")
        return pc.cast(pc.cast(dated, pa.timestamp(target.unit)), target)

    return _halved(values, target, cast)


def _binary(values: pa.Array, target: pa.DataType, rules: CastRules) -> Cells:
    return _halved(values, target, lambda text: pc.cast(text, target))


def _nested(values: pa.Array, target: pa.DataType) -> Cells:
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
    refused = (*_explain(values, rows, target), *made.refused)
    return Cells(made.values, tuple(sorted(refused, key=lambda refusal: refusal.row)))


def _load_json(text: str) -> object:
    return json.loads(
        text, parse_float=Decimal, parse_constant=Decimal, object_pairs_hook=_once_each
    )


def _once_each(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key stands there twice")
    return made


def numbers_in(values: pa.Array, rules: CastRules) -> pa.Array | None:
    """Text that is all numbers, with a point and without spaces; None where some is not."""
    trimmed = pc.ascii_trim_whitespace(_point(values, rules))
    return trimmed if pc.all(_matches(trimmed, _FLOAT)).as_py() else None


def _by_pattern(
    values: pa.Array,
    target: pa.DataType,
    pattern: str,
    cast: Callable[[pa.Array], pa.Array],
    rules: CastRules,
) -> Cells:
    """Cast the column; on failure set apart what does not even look right, then halve."""
    pointed = _ungrouped(values, rules)
    if not pa.types.is_integer(target):
        pointed = _point(values, rules)
    try:
        return Cells(cast(pointed))
    except pa.ArrowInvalid:
        trimmed = pc.ascii_trim_whitespace(pointed)
    rows = _unlike(trimmed, pattern)
    likely = without(trimmed, rows)
    try:
        return Cells(cast(likely), _explain(values, rows, target))
    except pa.ArrowInvalid:
        rows = sorted({*rows, *failing_rows(likely, cast)})
    return Cells(cast(without(trimmed, rows)), _explain(values, rows, target))


def _halved(
    values: pa.Array,
    target: pa.DataType,
    cast: Callable[[pa.Array], pa.Array],
    zone: str | None = None,
) -> Cells:
    try:
        return Cells(cast(values))
    except pa.ArrowInvalid:
        trimmed = pc.ascii_trim_whitespace(values)
    rows = list(failing_rows(trimmed, cast))
    return Cells(cast(without(trimmed, rows)), _explain(values, rows, target, zone))


def _by_format(
    values: pa.Array, target: pa.DataType, format: str, zone: str | None = None
) -> Cells:
    if "%f" in format:  # which the column-wise parser does not know
        parsed = _one_by_one(values, format)
    else:
        parsed = pc.strptime(values, format=format, unit="us", error_is_null=True)
        parsed = without(parsed, _rolled_over(values, parsed, format))
    missed = pc.and_(pc.is_valid(values), pc.is_null(parsed))
    rows = pc.indices_nonzero(missed).to_pylist()
    if pa.types.is_timestamp(target) and bool(target.tz) != bool(parsed.type.tz):
        if zone is None or not target.tz:
            rows = pc.indices_nonzero(pc.is_valid(values)).to_pylist()
            return Cells(pa.nulls(len(values), target), _explain(values, rows, target))
        # An hour that the clocks skip or repeat is no moment.
        rows = sorted({*rows, *failing_rows(parsed, lambda part: pc.assume_timezone(part, zone))})
        parsed = pc.assume_timezone(without(parsed, rows), zone)
    return Cells(pc.cast(parsed, target), _explain(values, rows, target))


def _one_by_one(values: pa.Array, format: str) -> pa.Array:
    moments = [None if text is None else _moment(text, format) for text in values.to_pylist()]
    return pa.array(moments, pa.timestamp("us", "UTC" if "%z" in format else None))


def _moment(text: str, format: str) -> datetime | None:
    try:
        return datetime.strptime(text.strip(), format)
    except ValueError:
        return None


def _rolled_over(values: pa.Array, parsed: pa.Array, format: str) -> list[int]:
    """strptime makes 1 March of 30 February: days 1 to 3 are looked at again, exactly."""
    early = pc.fill_null(pc.less_equal(pc.day(parsed), 3), False)
    rows = pc.indices_nonzero(early).to_pylist()
    return [row for row in rows if _moment(values[row].as_py(), format) is None]


def _ungrouped(values: pa.Array, rules: CastRules) -> pa.Array:
    """Numbers without the separators of their thousands; what is not grouped by three stays."""
    mark = rules.thousands_separator
    if mark is None:
        return values
    point, comma = re.escape(rules.decimal_point), re.escape(mark)
    grouped = _matches(values, rf"^\s*[+-]?[0-9]{{1,3}}({comma}[0-9]{{3}})+({point}[0-9]*)?\s*$")
    return pc.if_else(grouped, pc.replace_substring(values, mark, ""), values)


def _point(values: pa.Array, rules: CastRules) -> pa.Array:
    values = _ungrouped(values, rules)
    if rules.decimal_point == ".":
        return values
    swapped = pc.replace_substring(values, ".", "\x00")
    return pc.replace_substring(swapped, rules.decimal_point, ".")


def _unlike(values: pa.Array, pattern: str) -> list[int]:
    """The rows that do not match; plain digits, which always do, are told apart more quickly."""
    rows = where_false(pc.ascii_is_decimal(values))
    rest = values.take(pa.array(rows, pa.int64()))
    return [rows[at] for at in where_false(_matches(rest, pattern))]


def _may_mislead(values: pa.Array) -> bool:
    """Whether there may be a decimal that pyarrow gets wrong: see ``cells.misleading``."""
    longest = pc.max(pc.binary_length(values)).as_py()
    if longest is None or longest > _MOST_DIGITS:
        return longest is not None
    text = values.buffers()[2].to_pybytes()
    return b"e" in text or b"E" in text


def _matches(values: pa.Array, pattern: str) -> pa.Array:
    return pc.match_substring_regex(values, pattern)


def _explain(
    values: pa.Array, rows: list[int], target: pa.DataType, zone: str | None = None
) -> tuple[Refusal, ...]:
    texts = values.take(pa.array(rows, pa.int64())).to_pylist()
    return tuple(
        Refusal(row, text, *_reason(text, target, zone))
        for row, text in zip(rows, texts, strict=True)
    )


def _reason(text: str, target: pa.DataType, zone: str | None) -> tuple[Code, str]:
    text = text.strip()
    if not text:
        return Code.EMPTY_FIELD, f"is empty, which is not NULL for {target} unless told"
    if pa.types.is_integer(target) or pa.types.is_decimal(target):
        return _number_reason(text, target)
    if pa.types.is_timestamp(target) and _is_moment(text):
        return _zone_reason(text, target, zone)
    return Code.INVALID_VALUE, f"is no {target}"


def _number_reason(text: str, target: pa.DataType) -> tuple[Code, str]:
    try:
        number = Decimal(text) if re.match(_NUMBER, text) else None
    except InvalidOperation:  # an exponent beyond all measure
        number = None
    if number is None:
        return Code.INVALID_VALUE, f"is no {target}"
    scale = target.scale if pa.types.is_decimal(target) else 0
    if decimal_places(number) > scale:
        return Code.PRECISION_LOSS, f"has more decimal places than {target} keeps"
    if pa.types.is_integer(target) and ("." in text or "e" in text.lower() or text[0] == "+"):
        return Code.INVALID_VALUE, f"is not spelled as {target}"
    return Code.OUT_OF_RANGE, f"is beyond the range of {target}"


def _zone_reason(text: str, target: pa.DataType, zone: str | None) -> tuple[Code, str]:
    moment = datetime.fromisoformat(text)
    if zone is not None and moment.tzinfo is None:
        return Code.INVALID_VALUE, f"is no one moment in {zone}: clocks skip or repeat that hour"
    if target.tz and moment.tzinfo is None:
        return Code.NO_TIME_ZONE, f"names no time zone, which {target} needs: set TIME_ZONE"
    if not target.tz and moment.tzinfo is not None:
        return Code.UNEXPECTED_TIME_ZONE, f"names a time zone, which {target} cannot keep"
    return Code.PRECISION_LOSS, f"is finer than {target} keeps"


def _is_moment(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


_CASTS: tuple[tuple[Callable[[pa.DataType], bool], TextCast], ...] = (
    (pa.types.is_integer, _integer),
    (pa.types.is_floating, _float),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_boolean, _boolean),
    (pa.types.is_date, _date),
    (pa.types.is_timestamp, _timestamp),
    (pa.types.is_time, _time),
    (pa.types.is_binary, _binary),
    (pa.types.is_large_binary, _binary),
)
