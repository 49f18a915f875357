"""Finish a copy: object, segments and reference appear in one transaction, or none does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, bindparam, func, select

from calque.errors import FailedPrecondition, InvalidInput, ResourceExhausted
from calque.store.metabase.accounts import quota
from calque.store.metabase.accounts.buckets import require_placement_of
from calque.store.metabase.copies.both_ends import Scene, looking, scene
from calque.store.metabase.copies.copy_at_once import copy_at_once, copy_in
from calque.store.metabase.copies.operations import (
    DROP_CHUNKS,
    Operation,
    OperationRecord,
    finishing,
    stored_keys,
)
from calque.store.metabase.copies.store_copy import store_copy
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.locks import ancestor_of, copy_locks, lock_families
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Parameters, Transaction
from calque.store.metabase.model import checks as verify
from calque.store.metabase.model.conditions import NO_CONDITIONS, Conditions
from calque.store.metabase.model.packed_keys import PackedKeys
from calque.store.metabase.model.records import (
    FreedSegment,
    ObjectLocation,
    ObjectRecord,
    WrappedMetadata,
    new_stream_id,
)
from calque.store.metabase.model.schema import COMMITTED, segment_copies, segments
from calque.store.metabase.objects.commit_object import Committed
from calque.store.metabase.objects.update_metadata import SET_METADATA, metadata_parameters
from calque.store.metabase.streams.lookup import Found, live, record_by_stream
from calque.store.metabase.streams.promotion import remove

_remote = and_(segments.c.inline_data.is_(None), segments.c.encrypted_size > 0)

SOURCE_SEGMENTS = Statement(
    "positions of a source",
    select(segments.c.position, segments.c.placement, _remote)
    .where(segments.c.stream_id == bindparam("of_stream"))
    .order_by(segments.c.position),
)
COUNT_COPIES = Statement(
    "count the copies of an ancestor",
    select(func.count()).where(segment_copies.c.ancestor_stream_id == bindparam("ancestor")),
)


@dataclass(frozen=True)
class FinishCopy:
    """The second half of a copy.

    ``keys`` are the last (or only) re-wrapped keys. Without ``override_metadata`` the
    ``metadata`` carries only the re-wrapped metadata key and its nonce.
    """

    operation: Operation
    source: ObjectLocation
    source_stream_id: bytes
    target: ObjectLocation
    keys: PackedKeys
    metadata: WrappedMetadata
    override_metadata: bool = False
    conditions: Conditions = NO_CONDITIONS
    may_overwrite: bool = True

    def __post_init__(self) -> None:
        verify.location(self.source)
        verify.location(self.target, "new")
        verify.stream_id(self.source_stream_id)
        verify.metadata(self.metadata, "new")
        if self.metadata.data and not self.override_metadata:
            raise InvalidInput("new metadata came without override_metadata")
        if self.source.project_id != self.target.project_id:
            raise InvalidInput("source and destination belong to different projects")


def finish_copy(database: Database, request: FinishCopy) -> Committed:
    """Commit the copy; a repeat of one that succeeded returns the same object.

    Raises ``FailedPrecondition`` when the source went away, was replaced or expired since
    Begin. On any error rows, references and quota are exactly as before.
    """
    copied = copy_at_once(database, request)
    if copied is not None:
        return Committed(copied, [])
    return database.write(lambda transaction: _finish(transaction, request))


def _finish(transaction: Transaction, request: FinishCopy) -> Committed:
    copied = copy_in(transaction, request)
    if copied is not None:
        return Committed(copied, [])
    ends, segment_rows = _look(transaction, request)
    if ends.operation is not None and ends.operation.finished:
        again = repeated(transaction, ends.operation, request.target)
        return Committed(again, [], is_new=False)
    request.operation.check_time(transaction.now)
    placement = require_placement_of(ends.placement, request.target.bucket, "destination")
    source = require_source(ends.source, request.source_stream_id, transaction.now)
    request.conditions.check_source(source.object)
    if request.source == request.target:
        return _onto_itself(transaction, request, ends, source.object)
    visible = live(ends.existing, transaction.now)
    request.conditions.check_target(
        visible.object if visible else None, may_overwrite=request.may_overwrite
    )
    keys = stored_keys(transaction, ends.operation, request.keys)
    keys.must_match([row[0] for row in segment_rows])
    metadata = copied_metadata(source.object, request)
    remote = require_placement(segment_rows, placement)
    return _store(transaction, request, ends, source, keys, metadata, remote=remote)


def _look(transaction: Transaction, request: FinishCopy) -> tuple[Scene, list[Any]]:
    """Lock the keys, then see both ends and the source's segments."""
    rows, positions = transaction.batch(
        [
            *copy_locks(transaction, request.source, request.target),
            looking(request.operation.operation_id, request.source, request.target),
            (SOURCE_SEGMENTS, {"of_stream": request.source_stream_id}),
        ]
    )[-2:]
    return scene(rows), positions


def repeated(
    transaction: Transaction, done: OperationRecord, target: ObjectLocation
) -> ObjectRecord:
    """The object that a finished operation made, if it is still there."""
    result = record_by_stream(transaction, done.result_stream_id or b"")
    if result is None or result.location != target:
        raise FailedPrecondition(
            "this operation was finished before, and its object was deleted or replaced since"
        )
    return result


def require_source(source: Found | None, stream_id: bytes, now: int) -> Found:
    """The source as it was at Begin, or ``FailedPrecondition``."""
    alive = live(source, now)
    if alive is None:
        raise FailedPrecondition("the source was deleted or has expired since the operation began")
    if alive.object.stream_id != stream_id:
        raise FailedPrecondition("the source was replaced since the operation began")
    return alive


def copied_metadata(source: ObjectRecord, request: FinishCopy) -> WrappedMetadata:
    """The metadata of the copy: the new one, or the source's under its re-wrapped key."""
    given = request.metadata
    if request.override_metadata:
        return given
    require_rewrapped(source, given)
    return WrappedMetadata(given.nonce, source.encrypted_metadata, given.key)


def require_rewrapped(source: ObjectRecord, given: WrappedMetadata) -> None:
    """Metadata that stays needs its key re-wrapped; where there is none, none may come."""
    if bool(source.encrypted_metadata_encrypted_key) != bool(given.key):
        what = "missing" if source.encrypted_metadata_encrypted_key else "given, but there is none"
        raise InvalidInput(f"the re-wrapped metadata key of the source is {what}")


def require_placement(rows: list[Any], placement: int) -> bool:
    """Whether any segment is remote; refuses pieces that may not serve the new bucket."""
    remote = [row[1] for row in rows if row[2]]
    if placement and any(each != placement for each in remote):
        raise FailedPrecondition(
            "the destination bucket has another placement than the pieces of the source"
        )
    return bool(remote)


def _store(
    transaction: Transaction,
    request: FinishCopy,
    ends: Scene,
    source: Found,
    keys: PackedKeys,
    metadata: WrappedMetadata,
    *,
    remote: bool,
) -> Committed:
    source, usage, freed = _make_room(transaction, ends, source, remote=remote)
    copy = _copy_of(source.object, request.target, metadata, ends.version, transaction.now)
    store_copy(
        transaction,
        copy,
        source.object,
        (source.ancestor or source.object.stream_id) if remote else None,
        keys,
        request.operation,
        usage.plus(copy),
        resumed=ends.operation is not None,
    )
    return Committed(copy, freed)


def _make_room(
    transaction: Transaction, ends: Scene, source: Found, *, remote: bool
) -> tuple[Found, quota.Usage, list[FreedSegment]]:
    """Lock the families, remove what is at the destination, see that one more copy may be."""
    touched = [source] if remote else []
    touched += [ends.existing] if ends.existing else []
    families = [(each.object.stream_id, each.ancestor) for each in touched]
    if ends.existing is None:
        counted = lock_families(transaction, families, [_counting(source)] if remote else [])
        _require_room(counted[0][0][0] if remote else 0)
        return source, quota.Usage(), []
    lock_families(transaction, families)
    freed = remove(transaction, ends.existing)
    # The removal may have promoted the source, or the ancestor it had.
    source = Found(source.object, ancestor_of(transaction, source.object.stream_id))
    if remote:
        _require_room(transaction.rows(*_counting(source))[0][0])
    return source, quota.Usage().minus(ends.existing.object), freed


def _counting(source: Found) -> tuple[Statement, Parameters]:
    return COUNT_COPIES, {"ancestor": source.ancestor or source.object.stream_id}


def _require_room(live_copies: int) -> None:
    if live_copies >= verify.MAX_LIVE_COPIES:
        raise ResourceExhausted(
            f"the original has {live_copies} copies, the limit is {verify.MAX_LIVE_COPIES}",
            hint="Delete a copy, or upload the object anew.",
        )


def _copy_of(
    source: ObjectRecord,
    target: ObjectLocation,
    metadata: WrappedMetadata,
    version: int,
    now: int,
) -> ObjectRecord:
    return source._replace(
        bucket_name=target.bucket,
        object_key=target.key,
        version=version,
        stream_id=new_stream_id(now),
        created_at=now,
        status=COMMITTED,
        encrypted_metadata_nonce=metadata.nonce,
        encrypted_metadata=metadata.data,
        encrypted_metadata_encrypted_key=metadata.key,
        zombie_deletion_deadline=None,
    )


def _onto_itself(
    transaction: Transaction, request: FinishCopy, ends: Scene, source: ObjectRecord
) -> Committed:
    """Without new metadata nothing changes; with it only the metadata does."""
    if not request.override_metadata:
        request.conditions.check_target(source, may_overwrite=True)
        return Committed(source, [], is_new=False)
    request.conditions.check_target(source, may_overwrite=request.may_overwrite)
    transaction.run(SET_METADATA, metadata_parameters(source, request.metadata))
    if ends.operation is not None:
        transaction.run(DROP_CHUNKS, {"of_operation": request.operation.operation_id})
    transaction.run(*finishing(request.operation, source.stream_id))
    changed = source._replace(
        encrypted_metadata_nonce=request.metadata.nonce,
        encrypted_metadata=request.metadata.data,
        encrypted_metadata_encrypted_key=request.metadata.key,
    )
    return Committed(changed, [], is_new=False)
