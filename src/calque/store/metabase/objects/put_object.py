"""Store an object of at most one segment: begin, segment and commit in one transaction."""

from __future__ import annotations

from dataclasses import dataclass

from calque.errors import InvalidInput
from calque.store.metabase.accounts import quota
from calque.store.metabase.accounts.buckets import BUCKET_PLACEMENT, require_bucket
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.locks import key_locks, lock_families
from calque.store.metabase.engine.transaction import Step, Transaction
from calque.store.metabase.model import checks as verify
from calque.store.metabase.model.conditions import NO_CONDITIONS, Conditions
from calque.store.metabase.model.records import FreedSegment, ObjectRecord
from calque.store.metabase.model.schema import COMMITTED
from calque.store.metabase.objects.begin_object import (
    INSERT_OBJECT,
    BeginObject,
    pending_record,
    require_future,
)
from calque.store.metabase.objects.commit_object import Committed
from calque.store.metabase.objects.commit_segment import (
    INSERT_SEGMENT,
    CommitSegment,
    segment_record,
)
from calque.store.metabase.streams.lookup import (
    COMMITTED_AT,
    NEXT_VERSION,
    OBJECT_BY_STREAM,
    FoundObject,
    at,
    live,
    object_in,
)
from calque.store.metabase.streams.promotion import remove


@dataclass(frozen=True)
class PutObject:
    """An upload whose stream the caller chose, so that a repeat is known for one."""

    begin: BeginObject
    stream_id: bytes
    segment: CommitSegment | None
    conditions: Conditions = NO_CONDITIONS
    may_overwrite: bool = True

    def __post_init__(self) -> None:
        verify.stream_id(self.stream_id)
        if self.segment is None:
            return
        if self.segment.stream_id != self.stream_id:
            raise InvalidInput("the segment is of another stream")


def put_object(database: Database, request: PutObject) -> Committed:
    """Store it and remove what was at the key; a repeat returns the object while it is there."""
    return database.write(lambda transaction: _put(transaction, request))


def _put(transaction: Transaction, request: PutObject) -> Committed:
    location = request.begin.location
    bucket, same, at_key, version = transaction.batch(
        [
            *key_locks(transaction, exclusive=[location]),
            (BUCKET_PLACEMENT, at(location)),
            (OBJECT_BY_STREAM, {"stream_id": request.stream_id}),
            (COMMITTED_AT, at(location)),
            (NEXT_VERSION, at(location)),
        ]
    )[-4:]
    require_bucket(bucket, location.bucket)
    repeated, existing = object_in(same), object_in(at_key)
    if repeated is not None:
        if repeated.object.location != location:
            raise InvalidInput("the request id was used before: take a new one")
        return Committed(repeated.object, [], is_new=False)
    require_future(transaction, request.begin.expires_at)
    visible = live(existing, transaction.now)
    request.conditions.check_target(
        visible.object if visible else None, may_overwrite=request.may_overwrite
    )
    made = _record(request, version[0][0], transaction.now)
    freed, usage = _clear(transaction, existing)
    _store(transaction, request, made, usage.plus(made))
    return Committed(made, freed)


def _record(request: PutObject, version: int, now: int) -> ObjectRecord:
    segment = request.segment
    plain_size = segment.plain_size if segment else 0
    return pending_record(request.begin, version, now)._replace(
        stream_id=request.stream_id,
        status=COMMITTED,
        segment_count=1 if segment else 0,
        total_plain_size=plain_size,
        total_encrypted_size=segment.encrypted_size if segment else 0,
        fixed_segment_size=plain_size,
        zombie_deletion_deadline=None,
    )


def _clear(
    transaction: Transaction, existing: FoundObject | None
) -> tuple[list[FreedSegment], quota.Usage]:
    if existing is None:
        return [], quota.Usage()
    lock_families(transaction, [(existing.object.stream_id, existing.ancestor)])
    return remove(transaction, existing), quota.Usage().minus(existing.object)


def _store(
    transaction: Transaction, request: PutObject, made: ObjectRecord, usage: quota.Usage
) -> None:
    work: list[Step] = [(INSERT_OBJECT, made._asdict())]
    if request.segment is not None:
        row = segment_record(request.segment, made.expires_at, made.created_at)
        work.append((INSERT_SEGMENT, row._asdict()))
    # Last, since charging a shard locks its row, for which other commits of the project may wait.
    work.append(quota.charge_step(transaction, made.project_id, usage))
    *_, charged = transaction.run_batch(work)
    quota.settle(transaction, made.project_id, usage, charged)
