"""Finding objects and buckets inside a transaction: the statements every operation shares."""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import bindparam, func, literal_column, select

from calque.errors import NotFound
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Parameters, Transaction
from calque.store.metabase.model.object_keys import key_is, key_parameter
from calque.store.metabase.model.records import ObjectLocation, ObjectRecord
from calque.store.metabase.model.schema import buckets, objects, segment_copies

# A literal, so that both planners see that the partial index serves.
IS_COMMITTED = objects.c.status == literal_column("3")

_WITH_ANCESTOR = select(objects, segment_copies.c.ancestor_stream_id).select_from(
    objects.outerjoin(segment_copies, segment_copies.c.stream_id == objects.c.stream_id)
)
AT_KEY = (
    objects.c.project_id == bindparam("project_id"),
    objects.c.bucket_name == bindparam("bucket"),
    key_is(objects.c.object_key, key_parameter("key")),
)

# Readers need no ancestor of the object: of an original they never touch the reference table.
RECORD_AT = Statement("record at a key", select(objects).where(*AT_KEY, IS_COMMITTED))
RECORD_BY_STREAM = Statement(
    "record by stream", select(objects).where(objects.c.stream_id == bindparam("stream_id"))
)
COMMITTED_AT = Statement("committed object at a key", _WITH_ANCESTOR.where(*AT_KEY, IS_COMMITTED))
OBJECT_BY_STREAM = Statement(
    "object by stream",
    _WITH_ANCESTOR.where(objects.c.stream_id == bindparam("stream_id")),
)
NEXT_VERSION = Statement(
    "next version at a key",
    select(func.coalesce(func.max(objects.c.version), 0) + 1).where(*AT_KEY),
)
BUCKET_PLACEMENT = Statement(
    "placement of a bucket",
    select(buckets.c.placement)
    .where(buckets.c.project_id == bindparam("project_id"), buckets.c.name == bindparam("bucket"))
    .with_for_update(read=True, key_share=True),
)
BUCKET_EXISTS = Statement(
    "bucket exists",
    select(buckets.c.placement).where(
        buckets.c.project_id == bindparam("project_id"), buckets.c.name == bindparam("bucket")
    ),
)


class Found(NamedTuple):
    """An object and the ancestor of its stream, when it is a copy."""

    object: ObjectRecord
    ancestor: bytes | None


def at(location: ObjectLocation) -> Parameters:
    """The parameters of the statements that look at one key."""
    return {"project_id": location.project_id, "bucket": location.bucket, "key": location.key}


def found(rows: list[Any]) -> Found | None:
    """The object in the rows of ``COMMITTED_AT`` or ``OBJECT_BY_STREAM``."""
    if not rows:
        return None
    *fields, ancestor = rows[0]
    return Found(ObjectRecord(*fields), ancestor)


def live(candidate: Found | None, now: int) -> Found | None:
    """``candidate`` unless it has expired: an expired object is not there any more."""
    return None if candidate is None or candidate.object.expired(now) else candidate


def record_by_stream(transaction: Transaction, stream_id: bytes) -> ObjectRecord | None:
    """The object whose contents are ``stream_id``, whatever its state."""
    rows = transaction.rows(RECORD_BY_STREAM, {"stream_id": stream_id})
    return ObjectRecord(*rows[0]) if rows else None


def require_bucket(rows: list[Any], name: str, which: str = "") -> int:
    """The placement in the rows of a bucket statement, or ``NotFound`` naming the bucket."""
    return require_placement_of(rows[0][0] if rows else None, name, which)


def require_placement_of(placement: int | None, name: str, which: str = "") -> int:
    """``placement``, or ``NotFound`` naming the bucket that has none because it is not there."""
    if placement is None:
        raise missing_bucket(name, which)
    return placement


def missing_bucket(name: str, which: str = "") -> NotFound:
    """The error that says which bucket is not there, and how to make it."""
    lead = f"{which} " if which else ""
    return NotFound(
        f"{lead}bucket {name!r} does not exist", hint=f"Make it with: calque store mkbucket {name}"
    )
