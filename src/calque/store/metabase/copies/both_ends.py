"""Everything a copy or move must know about its two ends, in one look.

One statement instead of six: on PostgreSQL the trips and the driver cost more than the
rows do.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import FromClause, and_, bindparam, func, literal_column, select
from sqlalchemy.sql import ColumnElement

from calque.store.metabase.copies.operations import OperationRecord
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Parameters
from calque.store.metabase.model.object_keys import key_is, key_parameter
from calque.store.metabase.model.records import ObjectLocation, ObjectRecord
from calque.store.metabase.model.schema import buckets, objects, operations, segment_copies
from calque.store.metabase.streams.lookup import AT_KEY, Found

_source = objects.alias("source")
_source_copy = segment_copies.alias("source_copy")
_existing = objects.alias("existing")
_existing_copy = segment_copies.alias("existing_copy")


def _committed_at(alias: FromClause, bucket: str, key: str) -> ColumnElement[bool]:
    return and_(
        alias.c.project_id == bindparam("project_id"),
        alias.c.bucket_name == bindparam(bucket),
        key_is(alias.c.object_key, key_parameter(key)),
        alias.c.status == literal_column("3"),
    )


_version = (
    select(func.coalesce(func.max(objects.c.version), 0) + 1).where(*AT_KEY).scalar_subquery()
)
_placement = (
    select(buckets.c.placement)
    .where(buckets.c.project_id == bindparam("project_id"), buckets.c.name == bindparam("bucket"))
    .with_for_update(read=True, key_share=True)
    .scalar_subquery()
)
_target = select(_placement.label("placement"), _version.label("version")).subquery("target")

SCENE = Statement(
    "both ends of a copy",
    select(
        _target.c.placement,
        _target.c.version,
        operations,
        _source,
        _source_copy.c.ancestor_stream_id,
        _existing,
        _existing_copy.c.ancestor_stream_id,
    ).select_from(
        _target.outerjoin(operations, operations.c.operation_id == bindparam("operation_id"))
        .outerjoin(_source, _committed_at(_source, "source_bucket", "source_key"))
        .outerjoin(_source_copy, _source_copy.c.stream_id == _source.c.stream_id)
        .outerjoin(_existing, _committed_at(_existing, "bucket", "key"))
        .outerjoin(_existing_copy, _existing_copy.c.stream_id == _existing.c.stream_id)
    ),
)

_OPERATION_END = 2 + len(OperationRecord._fields)
_SOURCE_END = _OPERATION_END + len(ObjectRecord._fields) + 1


class Scene(NamedTuple):
    """Both ends: the destination's bucket, next version and object; the source; the operation."""

    placement: int | None
    version: int
    operation: OperationRecord | None
    source: Found | None
    existing: Found | None


def looking(
    operation_id: bytes, source: ObjectLocation, target: ObjectLocation
) -> tuple[Statement, Parameters]:
    """The statement that looks at both ends."""
    return SCENE, {
        "operation_id": operation_id,
        "project_id": target.project_id,
        "bucket": target.bucket,
        "key": target.key,
        "source_bucket": source.bucket,
        "source_key": source.key,
    }


def scene(rows: list[Any]) -> Scene:
    """What the rows of ``SCENE`` say."""
    row = rows[0]
    operation = row[2:_OPERATION_END]
    return Scene(
        row[0],
        row[1],
        OperationRecord(*operation) if operation[0] is not None else None,
        _found(row[_OPERATION_END:_SOURCE_END]),
        _found(row[_SOURCE_END:]),
    )


def _found(fields: Any) -> Found | None:
    if fields[0] is None:
        return None
    *columns, ancestor = fields
    return Found(ObjectRecord(*columns), ancestor)
