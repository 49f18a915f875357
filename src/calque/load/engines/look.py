"""Looking at a stage without loading it: the first rows, cast as they would be."""

from __future__ import annotations

import pyarrow as pa

from calque.load.formats.reading import ReadSpec
from calque.load.formats.registry import open_reader
from calque.load.formats.source import Source
from calque.load.metadata_columns import with_metadata
from calque.load.task import Operators
from calque.load.work import Piece, WritePlan


def sample_rows(plan: WritePlan, rows: int) -> pa.Table:
    """The first rows that would be loaded; refused ones are passed over, files in their order."""
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
