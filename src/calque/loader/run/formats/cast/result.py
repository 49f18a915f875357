"""What a cast gives: a column with refused cells, and how single bad cells are found in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from calque.loader.run.formats.refusal import Code


class RefusedCell(NamedTuple):
    """One refused cell of a column."""

    row: int
    value: str | None
    code: Code
    message: str


@dataclass(frozen=True, slots=True)
class CastResult:
    """A cast column. Refused cells are null in ``values`` and listed, in row order."""

    values: pa.Array
    refused: tuple[RefusedCell, ...] = ()


Cast = Callable[[pa.Array], pa.Array]


def refuse_all(values: pa.Array, target: pa.DataType, code: Code, message: str) -> CastResult:
    """Every cell that is not null is refused for one reason."""
    rows = [row for row in range(len(values)) if values[row].is_valid]
    refused = tuple(RefusedCell(row, show_cell(values[row]), code, message) for row in rows)
    return CastResult(pa.nulls(len(values), target), refused)


def salvage(values: pa.Array, target: pa.DataType, cast: Cast, code: Code, why: str) -> CastResult:
    """Cast what can be cast; find the rest by halving the column."""
    rows = list(failing_rows(values, cast))
    refused = tuple(RefusedCell(row, show_cell(values[row]), code, why) for row in rows)
    return CastResult(cast(without(values, rows)), refused)


def failing_rows(values: pa.Array, cast: Cast, offset: int = 0) -> Iterator[int]:
    """The rows, in order, that ``cast`` refuses."""
    try:
        cast(values)
        return
    except pa.ArrowInvalid:
        if len(values) == 1:
            yield offset
            return
    # Few cells are bad, so halving casts each good one a few times and not once for each cell.
    half = len(values) // 2
    yield from failing_rows(values.slice(0, half), cast, offset)
    yield from failing_rows(values.slice(half), cast, offset + half)


def without(values: pa.Array, rows: list[int]) -> pa.Array:
    """The column with the cells of these rows set to null."""
    if not rows:
        return values
    return pc.if_else(all_but(rows, len(values)), values, pa.scalar(None, values.type))


def all_but(rows: Iterable[int], count: int) -> pa.Array:
    """A mask that is False at these rows."""
    mask = bytearray(b"\1") * count
    for row in rows:
        mask[row] = 0
    return pc.cast(pa.Array.from_buffers(pa.uint8(), count, [None, pa.py_buffer(mask)]), pa.bool_())


def where_false(mask: pa.Array) -> list[int]:
    """The rows at which a mask is False; null counts as true."""
    rows: list[int] = pc.indices_nonzero(pc.invert(pc.fill_null(mask, True))).to_pylist()
    return rows


def one_chunk(column: pa.ChunkedArray) -> pa.Array:
    """The column in one piece; one that is in one piece already is not copied."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def show_cell(cell: pa.Scalar) -> str | None:
    """A cell as text, whole: a report cuts it, the rescue column does not."""
    try:
        value = cell.as_py()
    except (ValueError, OverflowError):  # a moment that Python has no words for
        value = cell.cast(pa.string()).as_py()
    return None if value is None else str(value)
