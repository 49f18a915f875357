"""Which type a column of text has, judged by a sample of its values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from calque.load.formats.rules import CastRules
from calque.load.formats.text_cast import cast_text

_LEADING_ZERO = r"^\s*[+-]?0[0-9xX]"
_DIGITS = r"^\s*[01]\s*$"


def infer_type(values: Sequence[str | None], rules: CastRules) -> pa.DataType:
    """The narrowest type that keeps every value as it is; text where there is doubt.

    Numbers with leading zeros stay text, since a number would lose them.
    """
    column = pa.array(values, pa.string())
    known = column.drop_null()
    if not len(known):
        return pa.null()
    if pc.any(pc.match_substring_regex(known, _LEADING_ZERO)).as_py():
        return pa.string()
    for kind in _candidates(rules):
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


def _candidates(rules: CastRules) -> list[pa.DataType]:
    moments = [pa.timestamp("us"), pa.timestamp("us", "UTC")]
    if rules.time_zone is not None:
        moments.reverse()
    return [pa.int64(), pa.float64(), pa.bool_(), pa.date32(), *moments]
