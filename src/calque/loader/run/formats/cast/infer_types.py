"""Which type a column of text has, judged by a sample of its values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation

import pyarrow as pa
import pyarrow.compute as pc

from calque.loader.run.formats.cast.numerals import (
    WHOLE_IN_DOUBLE,
    Numeral,
    numeral,
    numeral_of,
)
from calque.loader.run.formats.cast.rules import CastRules
from calque.loader.run.formats.cast.text import cast_text, numbers_in

_LEADING_ZERO = r"^\s*[+-]?0[0-9xX]"
_DIGITS = r"^\s*[01]\s*$"
_SHORT = 15
"""Digits that a double always gives back."""


def infer_type(values: Sequence[str | None], rules: CastRules) -> pa.DataType:
    """The narrowest type that keeps every value as it is; text where there is doubt.

    Numbers are not settled yet: see ``numerals``. Those with leading zeros stay text, since a
    number would lose them. A format that was stated goes before all guesses: by it 01022024 may be
    a date.
    """
    column = pa.array(values, pa.string())
    known = column.drop_null()
    if not len(known):
        return pa.null()
    stated = infer_moment(known, rules)
    if stated is not None:
        return stated
    if pc.any(pc.match_substring_regex(known, _LEADING_ZERO)).as_py():
        return pa.string()
    number = _infer_number(known, rules)
    if number is not None:
        return number
    for kind in [pa.bool_(), *_moment_types(rules)]:
        if pa.types.is_boolean(kind) and pc.any(pc.match_substring_regex(known, _DIGITS)).as_py():
            continue
        if not cast_text(known, kind, rules).refused:
            return kind
    return pa.string()


def infer_fields(
    names: Sequence[str], rows: Iterable[Sequence[str | None]], rules: CastRules
) -> pa.Schema:
    """A schema for rows of text, every column nullable."""
    columns: list[list[str | None]] = [[] for _ in names]
    for row in rows:
        for column, value in zip(columns, row, strict=False):
            column.append(value)
    kinds = (infer_type(column, rules) for column in columns)
    return pa.schema([pa.field(name, kind) for name, kind in zip(names, kinds, strict=True)])


def infer_moment(known: pa.Array, rules: CastRules) -> pa.DataType | None:
    """The date or time that every text is by a format that was stated; None where it is none."""
    stated = []
    if rules.date_format is not None:
        stated.append(pa.date32())
    if rules.timestamp_format is not None:
        stated += [kind for kind in _moment_types(rules) if pa.types.is_timestamp(kind)]
    if rules.time_format is not None:
        stated.append(pa.time64("us"))
    return next((kind for kind in stated if not cast_text(known, kind, rules).refused), None)


def _moment_types(rules: CastRules) -> list[pa.DataType]:
    moments = [pa.timestamp("us"), pa.timestamp("us", "UTC")]
    if rules.time_zone is not None:
        moments.reverse()
    return [pa.date32(), *moments]


def _infer_number(known: pa.Array, rules: CastRules) -> pa.DataType | None:
    """The numeral of a column of numbers; text where no type holds them; None for no numbers."""
    whole = cast_text(known, pa.int64(), rules)
    if not whole.refused:
        return _integer_numeral(whole.values)
    found = numbers_in(known, rules)
    if found is None:
        return None
    finite = pc.match_substring_regex(found, "[0-9]")
    kind = _measure_fractions(found.filter(finite))
    if pc.all(finite).as_py():
        return kind
    return pa.float64() if isinstance(kind, Numeral) and kind.in_double else pa.string()


def _integer_numeral(values: pa.Array) -> Numeral:
    bounds = pc.min_max(values).as_py()
    most = max(abs(bounds["min"]), abs(bounds["max"]))
    return numeral(len(str(most)), 0, True, most <= WHOLE_IN_DOUBLE)


def _measure_fractions(texts: pa.Array) -> pa.DataType:
    """Short numbers are measured as a column, others one by one."""
    short = pc.and_(
        pc.less_equal(pc.binary_length(texts), _SHORT),
        pc.invert(pc.match_substring_regex(texts, "[eE]")),
    )
    found = _measure_short(pc.utf8_ltrim(texts.filter(short), "+-"))
    for text in texts.filter(pc.invert(short)).to_pylist():
        try:
            found = found.merge(numeral_of(Decimal(text)))
        except InvalidOperation:  # an exponent beyond all measure
            return pa.string()
    return found


def _measure_short(texts: pa.Array) -> Numeral:
    parts = pc.split_pattern(texts, ".", max_splits=1)
    whole = pc.utf8_ltrim(pc.list_element(parts, 0), "0") if len(texts) else texts
    behind = pc.utf8_rtrim(pc.replace_substring_regex(texts, r"^[^.]*\.?", ""), "0")
    return numeral(_longest_length(whole), _longest_length(behind), False, True)


def _longest_length(texts: pa.Array) -> int:
    return pc.max(pc.binary_length(texts)).as_py() or 0
