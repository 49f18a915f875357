"""Looking at a stage without loading it: the first rows, cast as they would be."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from calque.errors import DataError
from calque.loader.model.plan import Piece, WritePlan
from calque.loader.run.formats.reader import ParsedBatch, ReadSpec
from calque.loader.run.formats.registry import CRASH_PRONE, open_reader
from calque.loader.run.formats.staged_source import Source
from calque.loader.run.metadata_columns import with_metadata
from calque.loader.run.operators import Operators
from calque.loader.run.workers.process import WorkerCrashed, WorkerProcess
from calque.values.row_errors import RowError


class Sample(NamedTuple):
    """The first rows of files in their order, and those among them that would be refused."""

    rows: pa.Table
    refused: tuple[RowError, ...]


def sample_rows(plan: WritePlan, rows: int) -> Sample:
    """The first rows that would be loaded, as many as asked for; refused ones do not count."""
    if plan.format.kind not in CRASH_PRONE:
        return _sample(plan, rows)
    process = WorkerProcess(_sample)
    try:
        return process.run(plan, rows, about="a preview")
    except WorkerCrashed as error:
        raise DataError(
            f"the library that reads {plan.format.kind.upper()} crashed over a file of the stage, "
            "so it must be damaged",
            hint="Preview the files one by one; ON_ERROR = CONTINUE loads all but the bad one.",
        ) from error
    finally:
        process.stop()


def _sample(plan: WritePlan, rows: int) -> Sample:
    schema = plan.target.schema
    batches: list[pa.RecordBatch] = []
    refused: list[RowError] = []
    left = rows
    operators = Operators(plan.source_options)
    try:
        for file in plan.files if rows else ():
            source = Source(*operators.at(file.location), Piece(file))
            for parsed in open_reader(source, ReadSpec.of(plan)).read():
                batches.append(
                    with_metadata(parsed, file, plan).slice(0, left).select(schema.names)
                )
                refused += _refused_among(parsed, left)
                left -= batches[-1].num_rows
                if left <= 0:
                    break
            if left <= 0:
                break
    finally:
        operators.close()
    table = pa.Table.from_batches(batches).cast(schema) if batches else schema.empty_table()
    return Sample(table, tuple(refused))


def _refused_among(parsed: ParsedBatch, rows: int) -> Iterator[RowError]:
    """The refused records of a batch that stand before the last of so many rows."""
    numbers = parsed.record_numbers()
    last = numbers[rows - 1].as_py() if rows <= len(numbers) else None
    return (one for one in parsed.errors if last is None or one.record < last)
