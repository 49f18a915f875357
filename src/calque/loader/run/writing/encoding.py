"""How columns are stored: dictionaries only where values repeat, deltas for other numbers.

A dictionary for every column costs a quarter of the speed of a load and gains nothing on columns
whose values differ.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

_SAMPLE = 20_000
_REPEATS = 0.2
"""A dictionary pays where at most a fifth of the values are distinct."""


@dataclass(frozen=True, slots=True)
class Encoding:
    """The columns with a dictionary, and the encodings of those without."""

    dictionary: list[str]
    other: dict[str, str]


def choose_encoding(table: pa.Table) -> Encoding:
    """By the first rows of a file."""
    sample = table.slice(0, _SAMPLE)
    dictionary: list[str] = []
    other: dict[str, str] = {}
    for field in table.schema:
        if pa.types.is_nested(field.type) or pa.types.is_boolean(field.type):
            continue
        if _has_repeats(sample.column(field.name)):
            dictionary.append(field.name)
        elif _is_counted(field.type) and field.type.bit_width >= 32:
            other[field.name] = "DELTA_BINARY_PACKED"
    return Encoding(dictionary, other)


def _is_counted(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_temporal(kind))


def _has_repeats(column: pa.ChunkedArray) -> bool:
    if len(column) == 0:
        return False
    kind = column.type
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        column = column.slice(0, _SAMPLE // 10)
    return bool(pc.count_distinct(column).as_py() < len(column) * _REPEATS)
