"""Copy or move everything below a prefix at once: one transaction, all of it or nothing.

The gates of both buckets are closed (``engine/locks.py``), so that nobody else changes a name in
them meanwhile; on SQLite there is one writer anyway. Rows are written set by set, not one by one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    LargeBinary,
    Text,
    and_,
    bindparam,
    cast,
    func,
    insert,
    literal_column,
    null,
    or_,
    select,
    update,
)

from calque.errors import FailedPrecondition, InvalidInput, PermissionDenied
from calque.store.metabase.accounts import quota
from calque.store.metabase.accounts.buckets import BUCKET_PLACEMENT, require_bucket
from calque.store.metabase.copies.operations import (
    DROP_STAGED,
    OPERATION,
    finish_step,
    operation_record,
)
from calque.store.metabase.copies.stage_prefix import (
    COUNT_STAGED,
    PrefixOperation,
    nothing_there,
    something_went,
)
from calque.store.metabase.copies.store_copy import COPY_SLICES
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.locks import close_gates, lock_families
from calque.store.metabase.engine.statement import Statement, rewrite_statement
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model import checks as verify
from calque.store.metabase.model.object_keys import key_between, key_is, key_parameter
from calque.store.metabase.model.records import (
    NONCE_SIZE,
    WRAPPED_KEY_SIZE,
    FreedSegment,
    ObjectRecord,
)
from calque.store.metabase.model.schema import (
    objects,
    operation_objects,
    segment_copies,
    segment_slices,
    segments,
)
from calque.store.metabase.objects.list_objects import after_prefix
from calque.store.metabase.streams.lookup import IS_COMMITTED, FoundObject
from calque.store.metabase.streams.promotion import remove_all
from calque.store.metabase.streams.slices import HOLDERS, SOURCES_OF, count_holders, no_room

_staged = operation_objects.c
_of_operation = _staged.operation_id == bindparam("of_operation", type_=LargeBinary)
_below = and_(
    objects.c.project_id == bindparam("project"),
    objects.c.bucket_name == bindparam("old_bucket"),
    key_between(objects.c.object_key, key_parameter("first"), key_parameter("end")),
    IS_COMMITTED,
)
_is_staged = (
    select(_staged.stream_id)
    .where(
        _of_operation,
        _staged.stream_id == objects.c.stream_id,
        _staged.seen_metadata_key.is_not_distinct_from(objects.c.encrypted_metadata_encrypted_key),
    )
    .limit(1)
    .scalar_subquery()
)
UNSTAGED = Statement(
    "an object below a prefix that is not staged as it is",
    select(objects.c.stream_id)
    .where(
        _below,
        or_(objects.c.expires_at.is_(None), objects.c.expires_at > bindparam("now")),
        _is_staged.is_(None),
    )
    .limit(1),
)
_its_object = (
    select(objects.c.stream_id)
    .where(_below, objects.c.stream_id == _staged.stream_id)
    .limit(1)
    .scalar_subquery()
)
GONE = Statement(
    "a staged object that is not below the prefix any more",
    select(_staged.stream_id).where(_of_operation, _its_object.is_(None)).limit(1),
)
AT_TARGETS = Statement(
    "objects at the new keys of an operation",
    select(objects, segment_copies.c.ancestor_stream_id)
    .select_from(
        operation_objects.join(
            objects,
            and_(
                objects.c.project_id == bindparam("project"),
                objects.c.bucket_name == bindparam("new_bucket"),
                key_is(objects.c.object_key, _staged.new_key),
                IS_COMMITTED,
            ),
        ).outerjoin(segment_copies, segment_copies.c.stream_id == objects.c.stream_id)
    )
    .where(_of_operation),
)
OTHER_PLACEMENT = Statement(
    "a segment of an operation whose pieces lie elsewhere",
    select(segments.c.position)
    .select_from(operation_objects.join(segments, segments.c.stream_id == _staged.stream_id))
    .where(
        _of_operation,
        segments.c.inline_data.is_(None),
        segments.c.encrypted_size > 0,
        segments.c.placement != bindparam("placement", type_=Integer),
    )
    .limit(1),
)
STAGED_SOURCES = Statement(
    "objects of an operation with their ancestors",
    select(objects, segment_copies.c.ancestor_stream_id)
    .select_from(
        operation_objects.join(objects, objects.c.stream_id == _staged.stream_id).outerjoin(
            segment_copies, segment_copies.c.stream_id == objects.c.stream_id
        )
    )
    .where(_of_operation),
)

_there = objects.alias("there")
_new_bucket: ColumnElement[str] = cast(bindparam("new_bucket"), Text)
_version = (
    select(func.coalesce(func.max(_there.c.version), literal_column("0")) + 1)
    .where(
        _there.c.project_id == bindparam("project"),
        _there.c.bucket_name == _new_bucket,
        key_is(_there.c.object_key, _staged.new_key),
    )
    .correlate(operation_objects)
    .scalar_subquery()
)
MOVE_OBJECTS = Statement(
    "move the objects of an operation",
    update(objects)
    .where(_of_operation, objects.c.stream_id == _staged.stream_id)
    .values(
        bucket_name=_new_bucket,
        object_key=_staged.new_key,
        version=_version,
        encrypted_metadata_nonce=_staged.metadata_nonce,
        encrypted_metadata_encrypted_key=_staged.metadata_key,
    ),
)


def _cut(packed: ColumnElement[bytes], size: int) -> ColumnElement[bytes]:
    """Of the packed entries of an object that of the segment at hand, by the order of positions."""
    number = func.row_number().over(partition_by=segments.c.stream_id, order_by=segments.c.position)
    return func.substr(packed, (cast(number, Integer) - 1) * size + 1, size, type_=LargeBinary)


_nonce, _key = _cut(_staged.nonces, NONCE_SIZE), _cut(_staged["keys"], WRAPPED_KEY_SIZE)
REKEY_ALL = rewrite_statement(
    "re-key the segments of an operation",
    segments,
    {"encrypted_key_nonce": _nonce, "encrypted_key": _key},
    _of_operation,
    segments.c.stream_id == _staged.stream_id,
)

_now = bindparam("now", type_=BigInteger)
_new_object: dict[str, ColumnElement[Any]] = {
    "bucket_name": _new_bucket,
    "object_key": _staged.new_key,
    "version": _version,
    "stream_id": _staged.new_stream_id,
    "created_at": cast(_now, BigInteger),
    "encrypted_metadata_nonce": _staged.metadata_nonce,
    "encrypted_metadata_encrypted_key": _staged.metadata_key,
}
COPY_OBJECTS = Statement(
    "copy the objects of an operation",
    insert(objects).from_select(
        [column.name for column in objects.c],
        select(*(_new_object.get(column.name, column) for column in objects.c))
        .select_from(operation_objects.join(objects, objects.c.stream_id == _staged.stream_id))
        .where(_of_operation),
    ),
)
_new_segment: dict[str, ColumnElement[Any]] = {
    "stream_id": _staged.new_stream_id,
    "created_at": cast(_now, BigInteger),
    "repaired_at": cast(null(), BigInteger),
    "encrypted_key_nonce": _nonce,
    "encrypted_key": _key,
    "remote_alias_pieces": cast(null(), LargeBinary),
}
COPY_ALL_SEGMENTS = Statement(
    "copy the segments of an operation",
    insert(segments).from_select(
        [column.name for column in segments.c],
        select(*(_new_segment.get(column.name, column) for column in segments.c))
        .select_from(operation_objects.join(segments, segments.c.stream_id == _staged.stream_id))
        .where(_of_operation),
    ),
)
SLICED = Statement(
    "objects of an operation that have slices",
    select(_staged.stream_id, _staged.new_stream_id).where(
        _of_operation,
        select(segment_slices.c.position)
        .where(segment_slices.c.stream_id == _staged.stream_id)
        .limit(1)
        .scalar_subquery()
        .is_not(None),
    ),
)
_its_slice = (
    select(segment_slices.c.position)
    .where(
        segment_slices.c.stream_id == segments.c.stream_id,
        segment_slices.c.position == segments.c.position,
    )
    .limit(1)
    .scalar_subquery()
)
_borrows_whole = (
    select(segments.c.position)
    .where(
        segments.c.stream_id == _staged.new_stream_id,
        segments.c.inline_data.is_(None),
        segments.c.encrypted_size > 0,
        _its_slice.is_(None),
    )
    .limit(1)
    .scalar_subquery()
)
REFER_ALL = Statement(
    "refer to the originals of an operation",
    insert(segment_copies).from_select(
        ["stream_id", "ancestor_stream_id"],
        select(
            _staged.new_stream_id,
            func.coalesce(segment_copies.c.ancestor_stream_id, _staged.stream_id),
        )
        .select_from(
            operation_objects.outerjoin(
                segment_copies, segment_copies.c.stream_id == _staged.stream_id
            )
        )
        .where(_of_operation, _borrows_whole.is_not(None)),
    ),
)
_made = segment_copies.alias("made")
CROWDED = Statement(
    "an original of an operation with too many borrowers",
    select(_staged.stream_id)
    .select_from(operation_objects.join(_made, _made.c.stream_id == _staged.new_stream_id))
    .where(
        _of_operation,
        count_holders(_made.c.ancestor_stream_id)
        > literal_column(str(verify.MAX_LIVE_COPIES), BigInteger),
    )
    .limit(1),
)


class PrefixDone(NamedTuple):
    """How many objects were copied or moved; or the first that stood in the way, and none was."""

    objects: int
    freed: list[FreedSegment]
    existing: bytes | None = None


def finish_prefix(
    database: Database, asked: PrefixOperation, *, may_overwrite: bool = True
) -> PrefixDone:
    """Copy or move all that was staged; a repeat after success gives the same number.

    FailedPrecondition when anything below the prefix was written, replaced, deleted or given new
    metadata since it was read. On any error, and where an object is in the way, every row is as
    before.
    """
    return database.write(lambda transaction: _finish(transaction, asked, may_overwrite))


def _finish(transaction: Transaction, asked: PrefixOperation, may_overwrite: bool) -> PrefixDone:
    source, target = asked.source, asked.target
    close_gates(
        transaction, [(source.project_id, source.bucket), (target.project_id, target.bucket)]
    )
    values = _values(asked, transaction.now)
    states, old, new, counted = transaction.batch(
        [
            (OPERATION, {"operation_id": asked.operation.operation_id}),
            (BUCKET_PLACEMENT, {"project_id": source.project_id, "bucket": source.bucket}),
            (BUCKET_PLACEMENT, {"project_id": target.project_id, "bucket": target.bucket}),
            (COUNT_STAGED, values),
        ]
    )
    state = operation_record(states)
    if state is not None and state.is_finished:
        return PrefixDone(int.from_bytes(state.result_stream_id or b"", "big"), [])
    asked.operation.check_time(transaction.now)
    require_bucket(old, source.bucket, "source")
    placement = require_bucket(new, target.bucket, "destination")
    count, keys = (int(each) for each in counted[0])
    if count != keys:
        raise InvalidInput("two objects below the prefix are given one new key")
    _require_unchanged(transaction, asked, values, count)
    if placement and transaction.rows(OTHER_PLACEMENT, {**values, "placement": placement}):
        raise FailedPrecondition(
            "the destination bucket has another placement than pieces below the prefix"
        )
    in_the_way = _found(transaction, AT_TARGETS, values)
    live = [each for each in in_the_way if not each.object.is_expired(transaction.now)]
    if live and not asked.overwrite:
        first = min(each.object.object_key for each in live)
        return PrefixDone(0, [], existing=first)
    if live and not may_overwrite:
        raise PermissionDenied("this key may not delete, so it may not overwrite")
    freed, usage = _clear(transaction, asked, in_the_way, values)
    usage = _move(transaction, values, usage) if asked.move else _copy(transaction, values, usage)
    transaction.run(DROP_STAGED, {"of_operation": asked.operation.operation_id})
    transaction.run(*finish_step(asked.operation, count.to_bytes(8, "big")))
    # Last, since charging a shard locks its row, for which other commits of the project may wait.
    quota.charge(transaction, source.project_id, usage)
    return PrefixDone(count, freed)


def _values(asked: PrefixOperation, now: int) -> dict[str, Any]:
    return {
        "of_operation": asked.operation.operation_id,
        "project": asked.source.project_id,
        "old_bucket": asked.source.bucket,
        "new_bucket": asked.target.bucket,
        "first": asked.source.encrypted,
        "end": after_prefix(asked.source.encrypted),
        "now": now,
    }


def _require_unchanged(
    transaction: Transaction, asked: PrefixOperation, values: dict[str, Any], count: int
) -> None:
    if transaction.rows(UNSTAGED, values):
        if not count:
            raise FailedPrecondition("nothing was prepared for this operation")
        raise FailedPrecondition(
            "something was written below the prefix since it was read", hint="Begin again."
        )
    if not count:
        raise nothing_there(asked.source.bucket)
    if transaction.rows(GONE, values):
        raise something_went()


def _found(
    transaction: Transaction, statement: Statement, values: dict[str, Any]
) -> list[FoundObject]:
    rows = transaction.rows(statement, values)
    return [FoundObject(ObjectRecord(*fields), ancestor) for *fields, ancestor in rows]


def _clear(
    transaction: Transaction,
    asked: PrefixOperation,
    in_the_way: list[FoundObject],
    values: dict[str, Any],
) -> tuple[list[FreedSegment], quota.Usage]:
    """Lock the families of all that is touched, and take away what stands at the new names."""
    touched = list(in_the_way)
    if not asked.move:
        touched += _found(transaction, STAGED_SOURCES, values)
    lock_families(transaction, [(each.object.stream_id, each.ancestor) for each in touched])
    usage = quota.Usage()
    for each in in_the_way:
        usage = usage.minus(each.object)
    return remove_all(transaction, in_the_way), usage


def _move(transaction: Transaction, values: dict[str, Any], usage: quota.Usage) -> quota.Usage:
    transaction.run(MOVE_OBJECTS, values)
    transaction.run(REKEY_ALL, values)
    return usage


def _copy(transaction: Transaction, values: dict[str, Any], usage: quota.Usage) -> quota.Usage:
    # What stood in the way may have been the ancestor of a source: so the sources are read now.
    for each in _found(transaction, STAGED_SOURCES, values):
        usage = usage.plus(each.object)
    transaction.run(COPY_OBJECTS, values)
    transaction.run(COPY_ALL_SEGMENTS, values)
    _copy_slices(transaction, values)
    transaction.run(REFER_ALL, values)
    if transaction.rows(CROWDED, values):
        raise no_room()
    return usage


def _copy_slices(transaction: Transaction, values: dict[str, Any]) -> None:
    """Few objects have slices: those are copied one by one."""
    sliced = transaction.rows(SLICED, values)
    transaction.run_batch(
        [(COPY_SLICES, {"source_stream": old, "new_stream": new}) for old, new in sliced]
    )
    found = transaction.batch([(SOURCES_OF, {"of_stream": new}) for _, new in sliced])
    lenders = sorted({row[0] for rows in found for row in rows})
    for rows in transaction.batch([(HOLDERS, {"ancestor": each}) for each in lenders]):
        if rows[0][0] > verify.MAX_LIVE_COPIES:
            raise no_room()
