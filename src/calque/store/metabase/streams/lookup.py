"""Finding objects inside a transaction: the statements that every operation shares."""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import bindparam, func, literal_column, select

from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Parameters, Transaction
from calque.store.metabase.model.object_keys import key_is, key_parameter
from calque.store.metabase.model.records import ObjectLocation, ObjectRecord
from calque.store.metabase.model.schema import objects, segment_copies

# A literal, so that both planners see that the partial index serves.
IS_COMMITTED = objects.c.status == literal_column("3")

# A look for each object: for a join PostgreSQL may go through all references there are.
_ancestor = (
    select(segment_copies.c.ancestor_stream_id)
    .where(segment_copies.c.stream_id == objects.c.stream_id)
    .limit(1)
    .scalar_subquery()
)
WITH_ANCESTOR = select(objects, _ancestor.label("ancestor_stream_id"))
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
COMMITTED_AT = Statement("committed object at a key", WITH_ANCESTOR.where(*AT_KEY, IS_COMMITTED))
OBJECT_BY_STREAM = Statement(
    "object by stream",
    WITH_ANCESTOR.where(objects.c.stream_id == bindparam("stream_id")),
)
NEXT_VERSION = Statement(
    "next version at a key",
    select(func.coalesce(func.max(objects.c.version), 0) + 1).where(*AT_KEY),
)


class FoundObject(NamedTuple):
    """An object and the ancestor of its stream, when it is a copy."""

    object: ObjectRecord
    ancestor: bytes | None


def at(location: ObjectLocation) -> Parameters:
    """The parameters of the statements that look at one key."""
    return {"project_id": location.project_id, "bucket": location.bucket, "key": location.key}


def object_in(rows: list[Any]) -> FoundObject | None:
    """The object in the rows of ``COMMITTED_AT`` or ``OBJECT_BY_STREAM``."""
    if not rows:
        return None
    *fields, ancestor = rows[0]
    return FoundObject(ObjectRecord(*fields), ancestor)


def live(candidate: FoundObject | None, now: int) -> FoundObject | None:
    """``candidate`` unless it has expired: an expired object is not there any more."""
    return None if candidate is None or candidate.object.is_expired(now) else candidate


def record_by_stream(transaction: Transaction, stream_id: bytes) -> ObjectRecord | None:
    """The object whose contents are ``stream_id``, whatever its state."""
    rows = transaction.rows(RECORD_BY_STREAM, {"stream_id": stream_id})
    return ObjectRecord(*rows[0]) if rows else None
