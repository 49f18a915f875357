"""Schemas: of a table that is to be made, and of one that grows with its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import pyarrow as pa

from calque.errors import ConditionNotMatch, DataError, NotFound, StatementInvalid
from calque.loader.commit.tables import Lake, Snapshot
from calque.loader.model.file_formats import FormatOptions
from calque.loader.model.plan import ColumnMatch, Engine, Transformation
from calque.loader.model.staged_file import StagedFile
from calque.loader.request.request import LoadRequest
from calque.loader.run.infer import SAMPLED
from calque.loader.run.metadata_columns import TYPES
from calque.values import count_of

SAMPLE = SAMPLED
"""Files whose heads are read to infer the schema of a new table."""

WIDER = {
    (pa.int8(), pa.int16()),
    (pa.int8(), pa.int32()),
    (pa.int8(), pa.int64()),
    (pa.int16(), pa.int32()),
    (pa.int16(), pa.int64()),
    (pa.int32(), pa.int64()),
    (pa.float32(), pa.float64()),
}


def schema_for_new_table(
    request: LoadRequest,
    engine: Engine,
    files: Sequence[StagedFile],
    format: FormatOptions,
    source_options: Mapping[str, object],
    lake: Lake | None = None,
) -> pa.Schema:
    """The given schema, or what the first files have; with the columns that calque fills."""
    schema = request.schema
    if schema is None:
        schema = engine.infer(
            files,
            format,
            source_options,
            skip_bad=not request.aborts,
            transformation=_name_columns(request),
        )
        schema = _as_kept(schema, lake)
    for extra in request.metadata_columns:
        if extra.column not in schema.names:
            schema = schema.append(pa.field(extra.column, TYPES[extra.kind]))
    if request.rescue_column is not None and request.rescue_column not in schema.names:
        schema = schema.append(pa.field(request.rescue_column, pa.string()))
    absent = [name for name in request.partition_by if name not in schema.names]
    if absent:
        raise StatementInvalid(
            f"the files have no column {', '.join(absent)} to partition by",
            hint=f"Their columns: {', '.join(schema.names)}.",
        )
    if schema.names and set(schema.names) <= set(request.partition_by):
        raise StatementInvalid("a table cannot be partitioned by all of its columns")
    return schema


def _as_kept(schema: pa.Schema, lake: Lake | None) -> pa.Schema:
    """Delta has no type for a time of the day: as text it keeps every digit."""
    if lake is None or lake.kind != "delta":
        return schema
    return pa.schema(
        [one.with_type(pa.string()) if pa.types.is_time(one.type) else one for one in schema]
    )


def _name_columns(request: LoadRequest) -> Transformation | None:
    """The SELECT that is to make a table: it must say what the columns are called."""
    chosen = request.transformation
    if chosen is None:
        return None
    columns = request.columns or chosen.columns
    if request.columns and len(columns) != len(chosen.expressions):
        raise StatementInvalid(
            f"{count_of(len(columns), 'column')} {'is' if len(columns) == 1 else 'are'} listed "
            f"after the table's name, the SELECT has "
            f"{count_of(len(chosen.expressions), 'expression')}"
        )
    if twice := sorted({name for name in columns if columns.count(name) > 1}):
        raise StatementInvalid(f"the SELECT names columns twice: {', '.join(twice)}")
    if len(columns) != len(chosen.expressions):
        raise StatementInvalid(
            "the table is not there and the SELECT does not name its columns",
            hint="Name each expression, $1::INT AS id, or list the columns after the table's name.",
        )
    return replace(chosen, columns=columns)


def evolve_table(
    request: LoadRequest,
    engine: Engine,
    lake: Lake,
    snapshot: Snapshot,
    files: Sequence[StagedFile],
    format: FormatOptions,
    match: ColumnMatch,
    source_options: Mapping[str, object],
) -> Snapshot:
    """Let the table take in the columns that the files have and it has not; the table after it."""
    if match == "position":
        raise StatementInvalid("a schema can only evolve where columns are matched by name")
    try:
        inferred = engine.infer(files, format, source_options, skip_bad=not request.aborts)
    except (ConditionNotMatch, NotFound):
        return snapshot  # all of them changed since they were listed, which the load will tell
    except DataError:
        if request.aborts and any(file.identity.size for file in files):
            raise
        return snapshot  # they are empty, or all bad: each is told by the load, which goes on
    inferred = _as_kept(inferred, lake)
    for _ in range(10):
        grown = grow(snapshot.target.schema, inferred, match, request.evolve_limit)
        if grown.equals(snapshot.target.schema):
            return snapshot
        with suppress(ConditionNotMatch):  # somebody committed meanwhile: look again
            snapshot.evolve(grown)
        snapshot = lake.open()
    return snapshot


def grow(have: pa.Schema, found: pa.Schema, match: ColumnMatch, limit: int) -> pa.Schema:
    """``have`` with the new columns of ``found`` (nullable) and wider types where that is safe.

    A type that conflicts stays as it is: its values are errors, or go to the rescue column.
    """
    fold = str.casefold if match == "name_insensitive" else str
    known = {fold(name): index for index, name in enumerate(have.names)}
    fields = list(have)
    added = 0
    for field in found:
        index = known.get(fold(field.name))
        if index is None:
            fields.append(field.with_nullable(True))
            added += 1
        elif _is_wider(fields[index].type, field.type):
            fields[index] = fields[index].with_type(field.type)
    if added > limit:
        raise DataError(
            f"the files bring {added} new columns, more than the {limit} allowed in one load",
            hint="Raise the limit if they are all meant, or load them without evolution.",
        )
    return pa.schema(fields)


def _is_wider(have: pa.DataType, found: pa.DataType) -> bool:
    if isinstance(have, pa.Decimal128Type) and isinstance(found, pa.Decimal128Type):
        return bool(have.scale == found.scale and have.precision < found.precision)
    return (have, found) in WIDER
