"""Copy or move everything below a prefix at once: one transaction, all of it or nothing.

The gates of both buckets are closed (``engine/locks.py``), so that nobody else changes a name in
them meanwhile; on SQLite there is one writer anyway. Rows are written set by set, not one by one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sqlalchemy import (
    Integer,
    LargeBinary,
    and_,
    bindparam,
    case,
    func,
    literal_column,
    or_,
    select,
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
from calque.store.metabase.copies.prefix_rows import copy_rows, move_rows
from calque.store.metabase.copies.stage_prefix import (
    COUNT_NEW_KEYS,
    PrefixOperation,
    changed_below,
    nothing_there,
    pack_count,
    staged_count,
)
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.locks import close_gates, lock_families
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model.object_keys import key_between, key_is, key_parameter
from calque.store.metabase.model.records import (
    FreedSegment,
    ObjectRecord,
)
from calque.store.metabase.model.schema import (
    objects,
    operation_objects,
    segment_copies,
    segments,
)
from calque.store.metabase.objects.list_objects import after_prefix
from calque.store.metabase.streams.lookup import IS_COMMITTED, FoundObject
from calque.store.metabase.streams.promotion import remove_all

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
# Found by its stream alone, and looked at then: without statistics PostgreSQL would go through all
# that lies below the prefix for each.
_is_below = (
    select(case((_below, literal_column("1")), else_=literal_column("0")))
    .where(objects.c.stream_id == _staged.stream_id)
    .scalar_subquery()
)
GONE = Statement(
    "a staged object that is not below the prefix any more",
    select(_staged.stream_id)
    .where(_of_operation, func.coalesce(_is_below, literal_column("0")) == literal_column("0"))
    .limit(1),
)
_there = objects.alias("there")
# A look for each: of a join PostgreSQL makes every pair, as long as it has no statistics.
_at_target = (
    select(_there.c.stream_id)
    .where(
        _there.c.project_id == bindparam("project"),
        _there.c.bucket_name == bindparam("new_bucket"),
        key_is(_there.c.object_key, _staged.new_key),
        _there.c.status == literal_column("3"),  # as IS_COMMITTED, of the alias
    )
    .limit(1)
    .scalar_subquery()
)
_taken = select(_at_target.label("stream_id")).where(_of_operation).subquery("taken")
AT_TARGETS = Statement(
    "objects at the new keys of an operation",
    select(objects, segment_copies.c.ancestor_stream_id).select_from(
        _taken.join(objects, objects.c.stream_id == _taken.c.stream_id).outerjoin(
            segment_copies, segment_copies.c.stream_id == objects.c.stream_id
        )
    ),
)
IN_THE_WAY = Statement(
    "anything below the new prefix",
    select(objects.c.stream_id)
    .where(
        objects.c.project_id == bindparam("project"),
        objects.c.bucket_name == bindparam("new_bucket"),
        key_between(objects.c.object_key, key_parameter("new_first"), key_parameter("new_end")),
    )
    .limit(1),
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
            (COUNT_NEW_KEYS, values),
        ]
    )
    state = operation_record(states)
    if state is not None and state.is_finished:
        return PrefixDone(staged_count(state), [])
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
    values["is_new"] = int(not transaction.rows(IN_THE_WAY, values))
    in_the_way = [] if values["is_new"] else _found(transaction, AT_TARGETS, values)
    live = [each for each in in_the_way if not each.object.is_expired(transaction.now)]
    if live and not asked.overwrite:
        first = min(each.object.object_key for each in live)
        return PrefixDone(0, [], existing=first)
    if live and not may_overwrite:
        raise PermissionDenied("this key may not delete, so it may not overwrite")
    freed, usage = _clear(transaction, asked, in_the_way, values)
    if asked.move:
        move_rows(transaction, values)
    else:
        # What stood in the way may have been the ancestor of a source: so they are read now.
        for each in _found(transaction, STAGED_SOURCES, values):
            usage = usage.plus(each.object)
        copy_rows(transaction, values)
    transaction.run(DROP_STAGED, {"of_operation": asked.operation.operation_id})
    transaction.run(*finish_step(asked.operation, pack_count(count)))
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
        "new_first": asked.target.encrypted,
        "new_end": after_prefix(asked.target.encrypted),
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
        raise changed_below()


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
