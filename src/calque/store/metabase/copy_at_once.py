"""The usual copy: the statement that writes it is the one that sees whether it may be.

Usual is: nothing lies at the destination, no condition has to be looked at, all keys came
with the call and are two at most, and the source is an original. Where that is not so, or
anything speaks against the copy, the statement writes nothing, and the caller goes the long
way (``finish_copy.py``), which copes or says what is wrong.

On PostgreSQL the whole copy is one trip: a statement that takes every lock in the order of
``locks.py``, and one that writes all rows under them. An original never becomes a copy, so
its own row is known to be the one that locks its family.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    FromClause,
    Insert,
    LargeBinary,
    Select,
    and_,
    bindparam,
    case,
    cast,
    exists,
    func,
    insert,
    literal_column,
    null,
    or_,
    select,
    true,
)

from calque.store.metabase import quota, verify
from calque.store.metabase.database import Database
from calque.store.metabase.locks import key_hash, strong_lock, weak_lock
from calque.store.metabase.lookup import AT_KEY, at
from calque.store.metabase.operations import finishing
from calque.store.metabase.schema import (
    FINISHED,
    buckets,
    objects,
    operations,
    segment_copies,
    segments,
)
from calque.store.metabase.segment_keys import key_of_two, nonce_of_two
from calque.store.metabase.statement import POSTGRES, Statement
from calque.store.metabase.store_copy import copied_segments, copying
from calque.store.metabase.transaction import Parameters, Transaction
from calque.store.metabase.values import ObjectRecord, new_stream_id

if TYPE_CHECKING:
    from calque.store.metabase.finish_copy import FinishCopy

MOST_KEYS = 2
"""Count, first and last say which positions there are, as long as there are two at most."""
NO_POSITION = -1

_source = objects.alias("source")
_bucket = buckets.alias("target_bucket")
_source_stream = bindparam("source_stream", type_=LargeBinary)
_new_stream = bindparam("new_stream", type_=LargeBinary)
_override = bindparam("override", type_=Boolean)
_now = bindparam("now", type_=BigInteger)
_remote = and_(segments.c.inline_data.is_(None), segments.c.encrypted_size > 0)
_nowhere: ColumnElement[int] = literal_column(str(NO_POSITION))


def _at_bucket(bucket: FromClause) -> ColumnElement[bool]:
    return and_(
        bucket.c.project_id == bindparam("project_id"), bucket.c.name == bindparam("bucket")
    )


_parts = (
    select(
        func.count().label("count"),
        func.coalesce(func.min(segments.c.position), _nowhere).label("first"),
        func.coalesce(func.max(segments.c.position), _nowhere).label("last"),
        func.min(case((_remote, segments.c.placement))).label("lowest"),
        func.max(case((_remote, segments.c.placement))).label("highest"),
    )
    .where(segments.c.stream_id == _source_stream)
    .subquery("parts")
)
_target = (
    select(
        (func.coalesce(func.max(objects.c.version), literal_column("0")) + 1).label("version"),
        func.count(case((objects.c.status == literal_column("3"), 1))).label("committed"),
    )
    .where(*AT_KEY)
    .subquery("target")
)
_live_copies = (
    select(func.count())
    .where(segment_copies.c.ancestor_stream_id == _source_stream)
    .scalar_subquery()
)
_has_metadata = (
    func.coalesce(func.length(_source.c.encrypted_metadata_encrypted_key), literal_column("0")) > 0
)
_differing: dict[str, ColumnElement[Any]] = {
    "bucket_name": _bucket.c.name,
    "object_key": bindparam("key", type_=LargeBinary),
    "version": _target.c.version,
    "stream_id": _new_stream,
    "created_at": _now,
    "encrypted_metadata_nonce": cast(bindparam("metadata_nonce"), LargeBinary),
    "encrypted_metadata": case(
        (_override, cast(bindparam("metadata"), LargeBinary)), else_=_source.c.encrypted_metadata
    ),
    "encrypted_metadata_encrypted_key": cast(bindparam("metadata_key"), LargeBinary),
    "zombie_deletion_deadline": cast(null(), BigInteger),
}
_usual = (
    select(
        *(_differing.get(name, column).label(name) for name, column in _source.c.items()),
    )
    .select_from(
        _source.join(_bucket, _at_bucket(_bucket)).join(_parts, true()).join(_target, true())
    )
    .where(
        _source.c.project_id == bindparam("project_id"),
        _source.c.bucket_name == bindparam("source_bucket"),
        _source.c.object_key == bindparam("source_key"),
        _source.c.status == literal_column("3"),
        _source.c.stream_id == _source_stream,
        or_(_source.c.expires_at.is_(None), _source.c.expires_at > _now),
        or_(_override, _has_metadata == bindparam("rewrapped", type_=Boolean)),
        _parts.c.count == bindparam("count", type_=BigInteger),
        _parts.c.first == bindparam("first", type_=BigInteger),
        _parts.c.last == bindparam("last", type_=BigInteger),
        or_(
            _bucket.c.placement == literal_column("0"),
            _parts.c.lowest.is_(None),
            and_(_parts.c.lowest == _bucket.c.placement, _parts.c.highest == _bucket.c.placement),
        ),
        _target.c.committed == literal_column("0"),
        ~exists().where(operations.c.operation_id == bindparam("operation_id")),
        ~exists().where(segment_copies.c.stream_id == _source_stream),
        _live_copies < literal_column(str(verify.MAX_LIVE_COPIES)),
    )
)
_columns = [column.name for column in objects.c]


def _few_segments(*also: ColumnElement[bool]) -> Insert:
    return copied_segments(nonce_of_two, key_of_two, *also)


def _reference(borrowed: ColumnElement[bool]) -> Insert:
    return insert(segment_copies).from_select(
        ["stream_id", "ancestor_stream_id"], select(_new_stream, _source_stream).where(borrowed)
    )


PLACE_COPY = Statement(
    "insert the object of a usual copy",
    sqlite=insert(objects).from_select(_columns, _usual).returning(objects),
)
REFER_IF_REMOTE = Statement(
    "insert a reference if pieces are borrowed",
    sqlite=_reference(exists().where(segments.c.stream_id == _source_stream, _remote)),
)
COPY_FEW_SEGMENTS = Statement("copy one segment or two", sqlite=_few_segments())

_fit = _usual.add_columns(_parts.c.lowest.is_not(None).label("remote")).cte("fit")
_charged = (
    quota.charge_shard(
        _fit.c.total_encrypted_size, _fit.c.segment_count, literal_column("1", BigInteger)
    )
    .returning(literal_column("1").label("one"))
    .cte("charged")
)
_placed = (
    insert(objects)
    .from_select(
        _columns,
        select(*(_fit.c[name] for name in _columns)).where(exists().select_from(_charged)),
    )
    .returning(objects)
    .cte("placed")
)
_is_placed = exists().select_from(_placed)
COPY_AT_ONCE = Statement(
    "a usual copy as a whole",
    postgres=select(_placed).add_cte(
        _few_segments(_is_placed).cte("new_segments"),
        _reference(exists().select_from(_placed.join(_fit, _fit.c.remote))).cte("new_reference"),
        insert(operations)
        .from_select(
            ["operation_id", "project_id", "state", "result_stream_id", "expires_at"],
            select(
                bindparam("operation_id", type_=LargeBinary),
                bindparam("project_id", type_=LargeBinary),
                literal_column(str(FINISHED)),
                _new_stream,
                bindparam("expires_at", type_=BigInteger),
            ).where(_is_placed),
        )
        .cte("new_operation"),
    ),
)
"""Gives the new object, or no row when nothing was written."""


def _locking(*keys: ColumnElement[Any]) -> Select[Any]:
    """Lock ``keys``, the destination's bucket and the source's family, in this order.

    A select list is worked off from left to right; a sub-select runs when it is reached.
    """
    bucket = (
        select(_bucket.c.placement)
        .where(_at_bucket(_bucket))
        .with_for_update(read=True, key_share=True)
    )
    family = select(_source.c.stream_id).where(_source.c.stream_id == _source_stream)
    return select(*keys, bucket.scalar_subquery(), family.with_for_update().scalar_subquery())


STRONG_FIRST = Statement("lock a copy, target first", postgres=_locking(strong_lock, weak_lock))
WEAK_FIRST = Statement("lock a copy, source first", postgres=_locking(weak_lock, strong_lock))


def copy_at_once(database: Database, request: FinishCopy) -> ObjectRecord | None:
    """A usual copy on PostgreSQL, committed; ``None`` when nothing was done."""
    now = database.clock()
    if database.dialect != POSTGRES or not _may_be_usual(request, now):
        return None
    weak, strong = key_hash(request.source), key_hash(request.target)
    if weak == strong:
        return None
    parameters = _parameters(request, now)
    order = STRONG_FIRST if strong < weak else WEAK_FIRST
    locking = {**parameters, "strong": strong, "weak": weak}
    _, rows = database.at_once([(order, locking), (COPY_AT_ONCE, parameters)])
    return ObjectRecord(*rows[0]) if rows else None


def copy_in(transaction: Transaction, request: FinishCopy) -> ObjectRecord | None:
    """A usual copy within a transaction of SQLite; ``None`` when nothing was done."""
    if transaction.dialect == POSTGRES or not _may_be_usual(request, transaction.now):
        return None
    parameters = _parameters(request, transaction.now)
    rows = transaction.rows(PLACE_COPY, parameters)
    if not rows:
        return None
    copy = ObjectRecord(*rows[0])
    if len(request.keys):
        transaction.run(COPY_FEW_SEGMENTS, parameters)
        transaction.run(REFER_IF_REMOTE, parameters)
    transaction.run(*finishing(request.operation, copy.stream_id))
    quota.charge(transaction, copy.project_id, quota.Usage().plus(copy))
    return copy


def _may_be_usual(request: FinishCopy, now: int) -> bool:
    conditions = request.conditions
    return (
        len(request.keys) <= MOST_KEYS
        and request.source != request.target
        and conditions.if_match is None
        and conditions.source_if_match is None
        and conditions.source_if_unmodified_since is None
        and now < request.operation.expires_at
    )


def _parameters(request: FinishCopy, now: int) -> Parameters:
    stream_id = new_stream_id(now)
    positions = request.keys.positions or (NO_POSITION,)
    return {
        **at(request.target),
        "source_bucket": request.source.bucket,
        "source_key": request.source.key,
        "count": len(request.keys),
        "first": positions[0],
        "last": positions[-1],
        "override": request.override_metadata,
        "rewrapped": bool(request.metadata.key),
        "metadata_nonce": request.metadata.nonce,
        "metadata": request.metadata.data,
        "metadata_key": request.metadata.key,
        "project": request.target.project_id,
        "of_shard": quota.my_shard(POSTGRES),
        **copying(request.source_stream_id, stream_id, now, request.keys),
        "operation_id": request.operation.operation_id,
        "expires_at": request.operation.expires_at,
    }
