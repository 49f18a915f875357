"""Commit an upload: the pending object becomes the object at its key, in one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import bindparam, func, select, update

from calque.errors import FailedPrecondition, NotFound
from calque.store.metabase.accounts import quota
from calque.store.metabase.accounts.buckets import BUCKET_PLACEMENT, require_bucket
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.locks import key_locks, lock_families
from calque.store.metabase.engine.statement import Statement, rewrite_statement
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model import checks as verify
from calque.store.metabase.model.conditions import NO_CONDITIONS, Conditions
from calque.store.metabase.model.packed_keys import PackedKeys
from calque.store.metabase.model.records import (
    FreedSegment,
    ObjectLocation,
    ObjectRecord,
    Position,
    WrappedMetadata,
)
from calque.store.metabase.model.schema import COMMITTED, PENDING, objects, segments
from calque.store.metabase.objects.commit_segment import drop_segments
from calque.store.metabase.objects.join_slices import join_neighbours, join_slices
from calque.store.metabase.streams.lookup import (
    COMMITTED_AT,
    OBJECT_BY_STREAM,
    at,
    live,
    object_in,
)
from calque.store.metabase.streams.promotion import remove

VARYING_SEGMENT_SIZE = -1

STREAM_SIZES = Statement(
    "sizes of the segments of a stream",
    select(segments.c.position, segments.c.plain_size, segments.c.encrypted_size)
    .where(segments.c.stream_id == bindparam("stream_id"))
    .order_by(segments.c.position),
)

_up_to_its_end = func.sum(segments.c.plain_size).over(order_by=segments.c.position)
SET_OFFSETS = rewrite_statement(
    "set the plain offsets of a stream",
    segments,
    {"plain_offset": _up_to_its_end - segments.c.plain_size},
    segments.c.stream_id == bindparam("of_stream"),
)
COMMIT_OBJECT = Statement(
    "commit an object row",
    update(objects)
    .where(objects.c.stream_id == bindparam("of_stream"))
    .values(
        status=COMMITTED,
        created_at=bindparam("new_created_at"),
        segment_count=bindparam("new_segment_count"),
        total_plain_size=bindparam("new_plain_size"),
        total_encrypted_size=bindparam("new_encrypted_size"),
        fixed_segment_size=bindparam("new_fixed_size"),
        encrypted_metadata_nonce=bindparam("new_nonce"),
        encrypted_metadata=bindparam("new_metadata"),
        encrypted_metadata_encrypted_key=bindparam("new_key"),
        zombie_deletion_deadline=None,
    ),
)


class Committed(NamedTuple):
    """The object that is there now, and what its predecessor leaves to be freed."""

    object: ObjectRecord
    freed: list[FreedSegment]
    is_new: bool = True
    """Whether this very call made it: not so for a repeat, or a copy of an object onto itself."""


@dataclass(frozen=True)
class CommitObject:
    """Finish the upload of ``stream_id``; ``metadata`` replaces that given at its beginning."""

    location: ObjectLocation
    stream_id: bytes
    metadata: WrappedMetadata | None = None
    conditions: Conditions = NO_CONDITIONS
    may_overwrite: bool = True
    parts: frozenset[int] | None = None
    """Only these, where they are given: what other parts hold goes in the same transaction."""
    joined_keys: PackedKeys | None = None
    """Keys for the upload as a copy, should its slices turn out to be one whole object."""

    def __post_init__(self) -> None:
        verify.location(self.location)
        verify.stream_id(self.stream_id)
        if self.metadata is not None:
            verify.metadata(self.metadata)


def commit_object(database: Database, request: CommitObject) -> Committed:
    """Make the upload visible and remove what was at the key.

    A repeat after success returns the same object while it is still there.
    """
    return database.write(lambda transaction: _commit(transaction, request))


def _commit(transaction: Transaction, request: CommitObject) -> Committed:
    location = request.location
    answers = transaction.batch(
        [
            *key_locks(transaction, exclusive=[location]),
            (BUCKET_PLACEMENT, at(location)),
            (OBJECT_BY_STREAM, {"stream_id": request.stream_id}),
            (COMMITTED_AT, at(location)),
        ]
    )[-3:]
    require_bucket(answers[0], location.bucket)
    pending, existing = object_in(answers[1]), object_in(answers[2])
    if pending is None or pending.object.location != location:
        raise NotFound("the upload is not there any more: it was aborted or replaced")
    if pending.object.status != PENDING:
        return Committed(pending.object, [], is_new=False)
    if pending.object.is_expired(transaction.now):
        # Nobody would ever see it, and what is at the key would be gone. A sweep that had come
        # first would have left nothing to commit.
        raise NotFound(
            "the upload is not there any more: its contents have expired",
            hint="What is copied in parts expires with its source.",
        )
    visible = live(existing, transaction.now)
    request.conditions.check_target(
        visible.object if visible else None, may_overwrite=request.may_overwrite
    )
    # The upload's own row too: a segment that is committed at this moment holds it, and must be
    # counted or refused.
    touched = [pending, *([existing] if existing else [])]
    lock_families(transaction, [(each.object.stream_id, each.ancestor) for each in touched])
    freed = _drop_other_parts(transaction, request)
    if request.joined_keys:
        join_slices(transaction, pending.object, request.joined_keys)
    if request.parts is not None and len(request.parts) > 1:
        freed += join_neighbours(transaction, pending.object)
    committed = _with_totals(transaction, pending.object, request.metadata)
    usage = quota.Usage().plus(committed)
    if existing is not None:
        freed += remove(transaction, existing)
        usage = usage.minus(existing.object)
    _store(transaction, committed)
    quota.charge(transaction, location.project_id, usage)
    return Committed(committed, freed)


def _drop_other_parts(transaction: Transaction, request: CommitObject) -> list[FreedSegment]:
    """Take the segments of parts that do not become the object away."""
    if request.parts is None:
        return []
    rows = transaction.rows(STREAM_SIZES, {"stream_id": request.stream_id})
    positions = [row[0] for row in rows]
    missing = request.parts - {Position.decode(each).part for each in positions}
    if missing:
        raise FailedPrecondition(
            f"{len(missing)} of {len(request.parts)} parts are not there", hint="Upload them again."
        )
    return drop_segments(
        transaction,
        request.stream_id,
        [each for each in positions if Position.decode(each).part not in request.parts],
    )


def _with_totals(
    transaction: Transaction, pending: ObjectRecord, metadata: WrappedMetadata | None
) -> ObjectRecord:
    rows = transaction.rows(STREAM_SIZES, {"stream_id": pending.stream_id})
    if metadata is not None:
        pending = pending._replace(
            encrypted_metadata_nonce=metadata.nonce,
            encrypted_metadata=metadata.data,
            encrypted_metadata_encrypted_key=metadata.key,
        )
    return pending._replace(
        status=COMMITTED,
        created_at=transaction.now,
        segment_count=len(rows),
        total_plain_size=sum(row[1] for row in rows),
        total_encrypted_size=sum(row[2] for row in rows),
        fixed_segment_size=_fixed_size([row[1] for row in rows]),
        zombie_deletion_deadline=None,
    )


def _fixed_size(sizes: Sequence[int]) -> int:
    """The size of every segment but a smaller last one; -1 when they vary."""
    if not sizes:
        return 0
    first, *rest = sizes
    regular = all(size == first for size in rest[:-1]) and (not rest or rest[-1] <= first)
    return first if regular else VARYING_SEGMENT_SIZE


def _store(transaction: Transaction, committed: ObjectRecord) -> None:
    changes: dict[str, Any] = {
        "of_stream": committed.stream_id,
        "new_created_at": committed.created_at,
        "new_segment_count": committed.segment_count,
        "new_plain_size": committed.total_plain_size,
        "new_encrypted_size": committed.total_encrypted_size,
        "new_fixed_size": committed.fixed_segment_size,
        "new_nonce": committed.encrypted_metadata_nonce,
        "new_metadata": committed.encrypted_metadata,
        "new_key": committed.encrypted_metadata_encrypted_key,
    }
    transaction.run(COMMIT_OBJECT, changes)
    if committed.segment_count > 1:
        transaction.run(SET_OFFSETS, {"of_stream": committed.stream_id})
