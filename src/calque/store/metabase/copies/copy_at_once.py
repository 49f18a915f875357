"""The usual copy: what writes it is what sees whether it may be.

Usual is: nothing lies at the destination, no condition has to be looked at, all keys came
with the call and are two at most, and the source is an original. Where that is not so, or
anything speaks against the copy, nothing is written, and the caller goes the long way
(``finish_copy.py``), which copes or says what is wrong.

On SQLite the insert of the object selects its row only if all that holds. On PostgreSQL a
procedure takes every lock in the order of ``engine/locks.py``, looks and writes, all in one trip.
An original never becomes a copy, so its own row is known to be the one that locks its family.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    ColumnElement,
    Integer,
    LargeBinary,
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

from calque.store.metabase.accounts import quota
from calque.store.metabase.accounts.buckets import BUCKET_PLACEMENT
from calque.store.metabase.copies.operations import FINISH_OPERATION, finishing
from calque.store.metabase.copies.store_copy import INSERT_COPY, copied_segments, copying
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.locks import key_hash
from calque.store.metabase.engine.procedure import Procedure, argument
from calque.store.metabase.engine.statement import POSTGRES, Statement
from calque.store.metabase.engine.transaction import Parameters, Transaction
from calque.store.metabase.model import checks as verify
from calque.store.metabase.model.object_keys import key_is, key_parameter
from calque.store.metabase.model.packed_keys import key_of_two, nonce_of_two
from calque.store.metabase.model.records import ObjectRecord, new_stream_id
from calque.store.metabase.model.schema import (
    FINISHED,
    buckets,
    objects,
    operations,
    segment_copies,
    segments,
)
from calque.store.metabase.objects.begin_object import INSERT_OBJECT
from calque.store.metabase.streams.lookup import AT_KEY, at

if TYPE_CHECKING:
    from calque.store.metabase.copies.finish_copy import FinishCopy

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


_at_bucket = and_(
    _bucket.c.project_id == bindparam("project_id"), _bucket.c.name == bindparam("bucket")
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
_source_fits = (
    _source.c.project_id == bindparam("project_id"),
    _source.c.bucket_name == bindparam("source_bucket"),
    key_is(_source.c.object_key, key_parameter("source_key")),
    _source.c.status == literal_column("3"),
    _source.c.stream_id == _source_stream,
    or_(_source.c.expires_at.is_(None), _source.c.expires_at > _now),
    or_(_override, _has_metadata == bindparam("rewrapped", type_=Boolean)),
)


def _rest_fits(placement: ColumnElement[int]) -> tuple[ColumnElement[bool], ...]:
    """The segments for their keys and the bucket, a free key, a new operation, room for a copy."""
    return (
        _parts.c.count == bindparam("count", type_=BigInteger),
        _parts.c.first == bindparam("first", type_=BigInteger),
        _parts.c.last == bindparam("last", type_=BigInteger),
        or_(
            placement == literal_column("0"),
            _parts.c.lowest.is_(None),
            and_(_parts.c.lowest == placement, _parts.c.highest == placement),
        ),
        _target.c.committed == literal_column("0"),
        ~exists().where(operations.c.operation_id == bindparam("operation_id")),
        ~exists().where(segment_copies.c.stream_id == _source_stream),
        _live_copies < literal_column(str(verify.MAX_LIVE_COPIES)),
    )


PLACE_COPY = Statement(
    "insert the object of a usual copy",
    sqlite=insert(objects)
    .from_select(
        [column.name for column in objects.c],
        select(*(_differing.get(name, column).label(name) for name, column in _source.c.items()))
        .select_from(_source.join(_bucket, _at_bucket).join(_parts, true()).join(_target, true()))
        .where(*_source_fits, *_rest_fits(_bucket.c.placement)),
    )
    .returning(objects),
)
REFER_IF_REMOTE = Statement(
    "insert a reference if pieces are borrowed",
    sqlite=insert(segment_copies).from_select(
        ["stream_id", "ancestor_stream_id"],
        select(_new_stream, _source_stream).where(
            exists().where(segments.c.stream_id == _source_stream, _remote)
        ),
    ),
)
COPY_FEW_SEGMENTS = Statement("copy one segment or two", copied_segments(nonce_of_two, key_of_two))
LOCK_SOURCE = Statement(
    "lock the source of a usual copy",
    postgres=select(_source).where(*_source_fits).with_for_update(),
)
LOOK_AT_REST = Statement(
    "what else a usual copy needs",
    postgres=select(_target.c.version, _parts.c.lowest.is_not(None))
    .select_from(_parts.join(_target, true()))
    .where(*_rest_fits(bindparam("placement", type_=Integer))),
)

_ARGUMENTS = {
    "strong": "bigint",
    "weak": "bigint",
    "project_id": "bytea",
    "bucket": "text",
    "key": "bytea",
    "source_bucket": "text",
    "source_key": "bytea",
    "source_stream": "bytea",
    "new_stream": "bytea",
    "now": "bigint",
    "count": "bigint",
    "first": "bigint",
    "last": "bigint",
    "nonces": "bytea",
    "keys": "bytea",
    "override": "boolean",
    "rewrapped": "boolean",
    "metadata_nonce": "bytea",
    "metadata": "bytea",
    "metadata_key": "bytea",
    "of_shard": "integer",
    "operation_id": "bytea",
    "expires_at": "bigint",
}
_given = {name: argument(name) for name in _ARGUMENTS}
_made = {column.name: f"made.{column.name}" for column in objects.c}
COPY_AT_ONCE = Procedure(
    "calque_copy_at_once",
    _ARGUMENTS,
    "objects",
    f"""
DECLARE
  made objects;
  found_placement integer;
  is_remote boolean;
BEGIN
  IF p_strong < p_weak THEN
    PERFORM pg_advisory_xact_lock(p_strong), pg_advisory_xact_lock_shared(p_weak);
  ELSE
    PERFORM pg_advisory_xact_lock_shared(p_weak), pg_advisory_xact_lock(p_strong);
  END IF;
  {BUCKET_PLACEMENT.woven(_given)} INTO found_placement;
  IF NOT FOUND THEN RETURN NULL; END IF;
  {LOCK_SOURCE.woven(_given)} INTO made;
  IF NOT FOUND THEN RETURN NULL; END IF;
  {LOOK_AT_REST.woven({**_given, "placement": "found_placement"})} INTO made.version, is_remote;
  IF NOT FOUND THEN RETURN NULL; END IF;
  {
        quota.CHARGE.woven(
            {
                **_given,
                "project": "p_project_id",
                "more_bytes": "made.total_encrypted_size",
                "more_segments": "made.segment_count",
                "more_objects": "1",
            }
        )
    };
  IF NOT FOUND THEN RETURN NULL; END IF;
  made.bucket_name := p_bucket;
  made.object_key := p_key;
  made.stream_id := p_new_stream;
  made.created_at := p_now;
  made.encrypted_metadata_nonce := p_metadata_nonce;
  IF p_override THEN made.encrypted_metadata := p_metadata; END IF;
  made.encrypted_metadata_encrypted_key := p_metadata_key;
  made.zombie_deletion_deadline := NULL;
  {INSERT_OBJECT.woven(_made)};
  IF p_count > 0 THEN
    {COPY_FEW_SEGMENTS.woven(_given)};
  END IF;
  IF is_remote THEN
    {INSERT_COPY.woven({"stream_id": "p_new_stream", "ancestor_stream_id": "p_source_stream"})};
  END IF;
  {FINISH_OPERATION.woven({**_given, "state": str(FINISHED), "result_stream_id": "p_new_stream"})};
  RETURN made;
END
""",
)


def copy_at_once(database: Database, request: FinishCopy) -> ObjectRecord | None:
    """A usual copy on PostgreSQL, committed; ``None`` when nothing was done."""
    now = database.clock()
    if database.dialect != POSTGRES or not _may_be_usual(request, now):
        return None
    weak, strong = key_hash(request.source), key_hash(request.target)
    if weak == strong:
        return None
    parameters = {**_parameters(request, now), "strong": strong, "weak": weak}
    row = database.call(COPY_AT_ONCE, parameters)
    return ObjectRecord(*row) if row else None


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
        "of_shard": quota.my_shard(POSTGRES),
        **copying(request.source_stream_id, stream_id, now, request.keys),
        "operation_id": request.operation.operation_id,
        "expires_at": request.operation.expires_at,
    }
