"""Delete the committed object at a key, or give an upload up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from calque.errors import ConditionNotMatch
from calque.store.metabase.accounts import quota
from calque.store.metabase.accounts.buckets import BUCKET_EXISTS, require_bucket
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.locks import key_locks, lock_families
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model import checks as verify
from calque.store.metabase.model.records import FreedSegment, ObjectLocation, ObjectRecord
from calque.store.metabase.model.schema import PENDING
from calque.store.metabase.streams.lookup import (
    COMMITTED_AT,
    OBJECT_BY_STREAM,
    FoundObject,
    at,
    live,
    object_in,
)
from calque.store.metabase.streams.promotion import remove


class Deleted(NamedTuple):
    """What was deleted, if anything was, and what is to be freed."""

    object: ObjectRecord | None
    freed: list[FreedSegment]


@dataclass(frozen=True)
class DeleteObject:
    """Delete the object at a location, if it still is ``if_match`` (a stream id)."""

    location: ObjectLocation
    if_match: bytes | None = None

    def __post_init__(self) -> None:
        verify.location(self.location)
        if self.if_match is not None:
            verify.stream_id(self.if_match, "if_match stream id")


@dataclass(frozen=True)
class AbortObject:
    """Give up the upload of ``stream_id``."""

    location: ObjectLocation
    stream_id: bytes

    def __post_init__(self) -> None:
        verify.location(self.location)
        verify.stream_id(self.stream_id)


def delete_object(database: Database, request: DeleteObject) -> Deleted:
    """Delete it; nothing happens when there is none. ``NotFound`` is for the bucket only."""
    return database.write(lambda transaction: _delete(transaction, request), makes_room=True)


def abort_object(database: Database, request: AbortObject) -> Deleted:
    """Remove the pending object; nothing happens when it is gone already."""
    return database.write(lambda transaction: _abort(transaction, request), makes_room=True)


def require_match(request: DeleteObject, found: FoundObject | None) -> None:
    """Refuse unless what is at the key is what ``if_match`` names."""
    if request.if_match is None:
        return
    if found is None:
        raise ConditionNotMatch("there is no object for if_match to match")
    if found.object.stream_id != request.if_match:
        raise ConditionNotMatch("the object is not the one that if_match names")


def _delete(transaction: Transaction, request: DeleteObject) -> Deleted:
    bucket, rows = transaction.batch(
        [
            *key_locks(transaction, exclusive=[request.location]),
            (BUCKET_EXISTS, at(request.location)),
            (COMMITTED_AT, at(request.location)),
        ]
    )[-2:]
    require_bucket(bucket, request.location.bucket)
    going = live(object_in(rows), transaction.now)
    require_match(request, going)
    if going is None:
        return Deleted(None, [])
    lock_families(transaction, [(going.object.stream_id, going.ancestor)])
    freed = remove(transaction, going)
    quota.charge(transaction, going.object.project_id, quota.Usage().minus(going.object))
    return Deleted(going.object, freed)


def _abort(transaction: Transaction, request: AbortObject) -> Deleted:
    rows = transaction.batch(
        [
            *key_locks(transaction, exclusive=[request.location]),
            (OBJECT_BY_STREAM, {"stream_id": request.stream_id}),
        ]
    )[-1]
    going = object_in(rows)
    if going is None or going.object.status != PENDING or going.object.location != request.location:
        return Deleted(None, [])
    lock_families(transaction, [(going.object.stream_id, None)])
    return Deleted(going.object, remove(transaction, going))
