"""Formats that have typed columns already: map, cast, and number what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import pyarrow as pa

from calque.loader.model.outcome import RowError
from calque.loader.run.formats.cast.row_caster import RowCaster
from calque.loader.run.formats.cast.rules import CastRules
from calque.loader.run.formats.column_map import (
    ColumnMap,
    map_columns,
    refuse_missing,
    require,
    with_extra,
)
from calque.loader.run.formats.reader import Extent, ParsedBatch, ReadSpec
from calque.loader.run.formats.refusal import CellError, Code, FileRefused


class BatchCaster:
    """Batches of a file with a schema become rows of the table."""

    def __init__(
        self, file: str, spec: ReadSpec, found: pa.Schema, missing: Literal["null", "error"]
    ) -> None:
        self._file = file
        self._names = found.names
        twice = next((name for name in found.names if found.names.count(name) > 1), None)
        if twice is not None:
            raise FileRefused.at(file, Code.NOT_THIS_FORMAT, f"two columns are named {twice!r}")
        self._mapped = map_columns(spec.schema, found.names, spec.match, spec.columns, file)
        extra: tuple[str, ...] = ()
        if spec.rescue is not None:
            self._mapped, extra = with_extra(self._mapped, found.names, pa.null())
        if spec.match == "position":
            self._check_width(len(found.names))
        if missing == "error" and not spec.columns:
            refuse_missing(self._mapped, file)
        require(self._mapped, file)
        self._caster = RowCaster(spec.schema, CastRules.of(spec.format), spec.rescue, extra)
        self._room = spec.keep_errors

    @property
    def wanted_columns(self) -> list[str]:
        """The columns of the file that are read."""
        return [self._names[source] for source in self._mapped.sources if source is not None]

    def parse(self, batch: pa.RecordBatch, extent: Extent) -> ParsedBatch:
        """A batch of the wanted columns as rows; ``extent`` moves on.

        Raises ArrowInvalid for a damaged one: the libraries hand on text that is no UTF-8 and
        decimals of too many digits, and a table that held them could not be read.
        """
        batch.validate(full=True)
        columns = columns_of(batch, self._mapped, self._names)
        cast = self._caster.cast(columns, batch.num_rows)
        errors = row_errors(self._file, cast.cell_errors[: self._room], extent.records)
        self._room -= len(errors)
        first = extent.records + 1
        extent.records += batch.num_rows
        rejected = tuple(cell_error.row for cell_error in cast.cell_errors)
        return ParsedBatch(cast.rows, first, batch.num_rows, rejected, errors)

    def _check_width(self, found: int) -> None:
        if found == self._mapped.width:
            return
        raise FileRefused.at(
            self._file,
            Code.COLUMN_COUNT,
            f"the file has {found} columns, {self._mapped.width} are expected",
            hint="Match by name, or list the columns.",
        )


def columns_of(
    batch: pa.RecordBatch, mapped: ColumnMap, names: Sequence[str]
) -> list[pa.Array | None]:
    """The batch's columns in the order of the table; None where the file has none."""
    return [None if source is None else batch.column(names[source]) for source in mapped.sources]


def row_errors(file: str, errors: Sequence[CellError], before: int) -> tuple[RowError, ...]:
    """Errors of a format without lines: the record number says where."""
    return tuple(error.at(file, before + error.row + 1) for error in errors)
