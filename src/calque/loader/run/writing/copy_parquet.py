"""A Parquet file that fits the table already is loaded by copying it: no row is decoded.

The copy is the Operator's own, so that on one object store no byte passes through the task; only
the footer is read, for the statistics.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from calque.loader.model.data_file import ColumnStats, DataFile, Span
from calque.loader.model.file_formats import ParquetFormat
from calque.loader.model.plan import WritePlan
from calque.loader.run.formats.reader import ReadSpec
from calque.loader.run.formats.staged_source import Source
from calque.loader.run.writing.table_root import TableRoot
from calque.operator import Operator
from calque.values import MIB

SMALLEST_COPIED = 1 * MIB
"""Smaller files are merged with others instead, lest a table become a heap of crumbs."""


def may_copy(plan: WritePlan, source: Source) -> bool:
    """Whether the plan lets a file of this size be copied at all."""
    return (
        isinstance(plan.format, ParquetFormat)
        and plan.format.copy_if_fits
        and plan.target.read_by_name
        and not plan.target.partition_columns
        and not plan.metadata_columns
        and plan.transformation is None
        and plan.rescue_column is None
        and not plan.columns
        and source.is_whole
        and source.size >= SMALLEST_COPIED
    )


def fits_table(spec: ReadSpec, metadata: pq.FileMetaData, stats: dict[str, ColumnStats]) -> bool:
    """The file's columns are the table's: same names, same types, no NULL where none may be."""
    found = metadata.schema.to_arrow_schema()
    if spec.match == "position" and found.names != spec.schema.names:
        return False
    if sorted(found.names) != sorted(spec.schema.names):
        return False
    if any(_is_legacy(metadata, index) for index in range(metadata.num_columns)):
        return False
    return all(_field_fits(found.field(field.name), field, stats) for field in spec.schema)


def copy_parquet(
    source: Source,
    origin: tuple[Operator, str],
    into: TableRoot,
    path: str,
    metadata: pq.FileMetaData,
    stats: dict[str, ColumnStats],
) -> DataFile:
    """Copy the file under the table's root; the bytes are those that were listed, or it raises."""
    operator, name = origin
    identity = source.file.identity
    version = identity.version if operator.capability.read_with_version else None
    operator.copy(
        name,
        into.full(path),
        into=into.operator,
        source_if_match=identity.pin,
        source_version=version,
        stream="auto",
        carry_metadata=False,
        carry_tags=False,
    )
    return DataFile(
        path=path,
        size=source.size,
        rows=metadata.num_rows,
        columns=stats,
        spans=(Span(source.location, 0, metadata.num_rows),),
    )


def _field_fits(found: pa.Field, wanted: pa.Field, stats: dict[str, ColumnStats]) -> bool:
    if found.type != wanted.type:
        return False
    if wanted.nullable or not found.nullable:
        return True
    known = stats.get(wanted.name)
    return known is not None and known.nulls == 0


def _is_legacy(metadata: pq.FileMetaData, index: int) -> bool:
    """INT96 timestamps are read by some engines as other moments than they are."""
    return bool(metadata.schema.column(index).physical_type == "INT96")
