"""Looking at a stage without loading it: the first rows, cast as they would be."""

from __future__ import annotations

import pyarrow as pa

from calque.errors import DataError
from calque.loader.model.plan import Piece, WritePlan
from calque.loader.run.formats.reader import ReadSpec
from calque.loader.run.formats.registry import CRASH_PRONE, open_reader
from calque.loader.run.formats.staged_source import Source
from calque.loader.run.metadata_columns import with_metadata
from calque.loader.run.operators import Operators
from calque.loader.run.workers.process import WorkerCrashed, WorkerProcess


def sample_rows(plan: WritePlan, rows: int) -> pa.Table:
    """The first rows that would be loaded; refused ones are passed over, files in their order."""
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


def _sample(plan: WritePlan, rows: int) -> pa.Table:
    schema = plan.target.schema
    batches: list[pa.RecordBatch] = []
    left = rows
    operators = Operators(plan.source_options)
    try:
        for file in plan.files:
            source = Source(*operators.at(file.location), Piece(file))
            for parsed in open_reader(source, ReadSpec.of(plan)).read():
                batch = with_metadata(parsed, file, plan).slice(0, left)
                batches.append(batch.select(schema.names))
                left -= batch.num_rows
                if left <= 0:
                    return pa.Table.from_batches(batches).cast(schema)
    finally:
        operators.close()
    return pa.Table.from_batches(batches).cast(schema) if batches else schema.empty_table()
