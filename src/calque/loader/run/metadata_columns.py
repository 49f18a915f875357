"""Columns that are filled from the staged file and not from its contents."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from calque.loader.model.plan import MetadataKind, WritePlan
from calque.loader.model.staged_file import StagedFile
from calque.loader.run.formats.reader import ParsedBatch

TYPES: dict[MetadataKind, pa.DataType] = {
    MetadataKind.FILE: pa.string(),
    MetadataKind.NAME: pa.string(),
    MetadataKind.ROW_NUMBER: pa.int64(),
    MetadataKind.LAST_MODIFIED: pa.timestamp("us", "UTC"),
    MetadataKind.ETAG: pa.string(),
    MetadataKind.SIZE: pa.int64(),
    MetadataKind.LOAD_ID: pa.string(),
    MetadataKind.LOAD_TIME: pa.timestamp("us", "UTC"),
}


def with_metadata(parsed: ParsedBatch, file: StagedFile, plan: WritePlan) -> pa.RecordBatch:
    """The rows with their metadata columns, in the order of the table."""
    if not plan.metadata_columns:
        return parsed.rows
    arrays: dict[str, pa.Array] = dict(
        zip(parsed.rows.schema.names, parsed.rows.columns, strict=True)
    )
    for column in plan.metadata_columns:
        values = metadata_values(column.kind, parsed, file, plan.load_id)
        wanted = plan.target.schema.field(column.column).type
        arrays[column.column] = pc.cast(values, wanted)
    names = plan.target.schema.names
    fields = [plan.target.schema.field(name).with_nullable(True) for name in names]
    return pa.RecordBatch.from_arrays([arrays[name] for name in names], schema=pa.schema(fields))


def metadata_values(
    kind: MetadataKind, parsed: ParsedBatch, file: StagedFile, load_id: str
) -> pa.Array:
    """A metadata column for the rows of a batch."""
    if kind is MetadataKind.ROW_NUMBER:
        return parsed.record_numbers()
    value = _constant(kind, file, load_id)
    return pa.repeat(pa.scalar(value, TYPES[kind]), parsed.rows.num_rows)


def _constant(kind: MetadataKind, file: StagedFile, load_id: str) -> Any:
    identity = file.identity
    values: dict[MetadataKind, Any] = {
        MetadataKind.FILE: file.location,
        MetadataKind.NAME: file.name,
        MetadataKind.LAST_MODIFIED: identity.last_modified,
        MetadataKind.ETAG: identity.etag,
        MetadataKind.SIZE: identity.size,
        MetadataKind.LOAD_ID: load_id,
        MetadataKind.LOAD_TIME: datetime.now(UTC),
    }
    return values[kind]
