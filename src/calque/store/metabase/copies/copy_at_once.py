"""The usual copy: what writes it is what sees whether it may be.

Usual is: nothing lies at the destination, no condition has to be looked at, all keys came
with the call and are two at most, and the source is an original. Where that is not so, or a rule
of ``rules.py`` is broken, nothing is written, and the caller goes the long way
(``finish_copy.py``), which copes or says what is wrong.

On SQLite the insert of the object selects its row only if all that holds. On PostgreSQL a
procedure takes every lock in the order of ``engine/locks.py``, looks and writes, all in one trip.
An original never becomes a copy, so its own row is known to be the one that locks its family.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    and_,
    bindparam,
    case,
    exists,
    func,
    insert,
    literal_column,
    select,
    true,
)

from calque.store.metabase.accounts import quota
from calque.store.metabase.accounts.buckets import BUCKET_PLACEMENT
from calque.store.metabase.copies.copy_request import FinishCopy
from calque.store.metabase.copies.operations import FINISH_OPERATION, finish_step
from calque.store.metabase.copies.rules import (
    METADATA_RULES,
    NO_POSITION,
    SOURCE_RULES,
    at_source,
    conditions_of,
    is_remote_segment,
    parts,
    placement_rule,
    room_rule,
    source,
    source_is_remote,
    source_stream,
)
from calque.store.metabase.copies.store_copy import (
    INSERT_COPY,
    new_stream,
    object_of_copy,
    segments_of_copy,
)
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.locks import gates_of, key_hash
from calque.store.metabase.engine.procedure import Procedure, argument
from calque.store.metabase.engine.statement import POSTGRES, Statement
from calque.store.metabase.engine.transaction import Parameters, Transaction
from calque.store.metabase.model.packed_keys import key_of_two, nonce_of_two
from calque.store.metabase.model.records import ObjectRecord
from calque.store.metabase.model.schema import (
    FINISHED,
    buckets,
    objects,
    operations,
    segment_copies,
    segment_slices,
    segments,
)
from calque.store.metabase.objects.begin_object import INSERT_OBJECT
from calque.store.metabase.streams.lookup import AT_KEY

MOST_KEYS = 2
"""Count, first and last say which positions there are, as long as there are two at most."""

_bucket = buckets.alias("target_bucket")
_at_bucket = and_(
    _bucket.c.project_id == bindparam("project_id"), _bucket.c.name == bindparam("bucket")
)
_target = (
    select(
        (func.coalesce(func.max(objects.c.version), literal_column("0")) + 1).label("version"),
        func.count(case((objects.c.status == literal_column("3"), 1))).label("committed"),
    )
    .where(*AT_KEY)
    .subquery("target")
)
_is_usual = (
    parts.c.count == bindparam("count", type_=BigInteger),
    parts.c.first == bindparam("first", type_=BigInteger),
    parts.c.last == bindparam("last", type_=BigInteger),
    _target.c.committed == literal_column("0"),
    ~exists().where(operations.c.operation_id == bindparam("operation_id")),
    ~exists().where(segment_copies.c.stream_id == source_stream),
    ~exists().where(segment_slices.c.stream_id == source_stream),
)
"""The keys are all there and fit, a free key, a new operation, an original without slices: the
rest is unusual, not wrong, so it is no rule and has no error."""


def _source_may_go() -> tuple[ColumnElement[bool], ...]:
    """What one row of the source tells."""
    return (at_source, *conditions_of(*SOURCE_RULES, *METADATA_RULES))


def _rest_may_go(placement: ColumnElement[int]) -> tuple[ColumnElement[bool], ...]:
    """What else must hold; PostgreSQL asks for it once the source is locked."""
    return (*_is_usual, *conditions_of(placement_rule(placement), room_rule(source_stream)))


PLACE_COPY = Statement(
    "insert the object of a usual copy",
    sqlite=insert(objects)
    .from_select(
        [column.name for column in objects.c],
        select(*object_of_copy(_target.c.version))
        .select_from(source.join(_bucket, _at_bucket).join(parts, true()).join(_target, true()))
        .where(*_source_may_go(), *_rest_may_go(_bucket.c.placement)),
    )
    .returning(objects),
)
REFER_IF_REMOTE = Statement(
    "insert a reference if pieces are borrowed",
    sqlite=insert(segment_copies).from_select(
        ["stream_id", "ancestor_stream_id"],
        select(new_stream, source_stream).where(
            exists().where(segments.c.stream_id == source_stream, is_remote_segment)
        ),
    ),
)
COPY_FEW_SEGMENTS = Statement("copy one segment or two", segments_of_copy(nonce_of_two, key_of_two))
LOCK_SOURCE = Statement(
    "lock the source of a usual copy, and make the copy of it",
    # The version is only known with the rest, so that of the source holds its place.
    postgres=select(*object_of_copy(source.c.version)).where(*_source_may_go()).with_for_update(),
)
LOOK_AT_REST = Statement(
    "what else a usual copy needs",
    postgres=select(_target.c.version, source_is_remote)
    .select_from(parts.join(_target, true()))
    .where(*_rest_may_go(bindparam("placement", type_=Integer))),
)

_ARGUMENTS = {
    "low_gate": "bigint",
    "high_gate": "bigint",
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
_of_copy = {column.name: f"new_copy.{column.name}" for column in objects.c}
# Each statement of a procedure sees what was committed before it began: so what is asked after a
# lock was waited for is true while it is held. The order is that of ``engine/locks.py``: gates,
# keys by rising hash, the bucket, the family. A procedure that returns early is committed all the
# same, so nothing is written before the last question: that is the charge, which writes only if it
# may.
COPY_AT_ONCE = Procedure(
    "calque_copy_at_once",
    _ARGUMENTS,
    "objects",
    f"""
DECLARE
  new_copy objects;
  found_placement integer;
  is_remote boolean;
BEGIN
  PERFORM pg_advisory_xact_lock_shared(p_low_gate), pg_advisory_xact_lock_shared(p_high_gate);
  IF p_strong < p_weak THEN
    PERFORM pg_advisory_xact_lock(p_strong), pg_advisory_xact_lock_shared(p_weak);
  ELSE
    PERFORM pg_advisory_xact_lock_shared(p_weak), pg_advisory_xact_lock(p_strong);
  END IF;
  {BUCKET_PLACEMENT.inline(_given)} INTO found_placement;
  IF NOT FOUND THEN RETURN NULL; END IF;
  {LOCK_SOURCE.inline(_given)} INTO new_copy;
  IF NOT FOUND THEN RETURN NULL; END IF;
  {
        LOOK_AT_REST.inline({**_given, "placement": "found_placement"})
    } INTO new_copy.version, is_remote;
  IF NOT FOUND THEN RETURN NULL; END IF;
  {
        quota.CHARGE.inline(
            {
                **_given,
                "project": "p_project_id",
                "more_bytes": "new_copy.total_encrypted_size",
                "more_segments": "new_copy.segment_count",
                "more_objects": "1",
            }
        )
    };
  IF NOT FOUND THEN RETURN NULL; END IF;
  {INSERT_OBJECT.inline(_of_copy)};
  IF p_count > 0 THEN
    {COPY_FEW_SEGMENTS.inline(_given)};
  END IF;
  IF is_remote THEN
    {INSERT_COPY.inline({"stream_id": "p_new_stream", "ancestor_stream_id": "p_source_stream"})};
  END IF;
  {FINISH_OPERATION.inline({**_given, "state": str(FINISHED), "result_stream_id": "p_new_stream"})};
  RETURN new_copy;
END
""",
)


def copy_at_once(database: Database, request: FinishCopy) -> ObjectRecord | None:
    """A usual copy on PostgreSQL, committed; ``None`` when nothing was done."""
    now = database.clock()
    if database.dialect != POSTGRES or not _may_be_usual(request, now):
        return None
    # The procedure locks two keys; where both have one hash the long way locks it once.
    weak, strong = key_hash(request.source), key_hash(request.target)
    if weak == strong:
        return None
    gates = gates_of([request.source, request.target])
    parameters = {
        **_parameters(request, now),
        "low_gate": gates[0],
        "high_gate": gates[-1],
        "strong": strong,
        "weak": weak,
    }
    row = database.call(COPY_AT_ONCE, parameters)
    return ObjectRecord(*row) if row else None


def copy_in_transaction(transaction: Transaction, request: FinishCopy) -> ObjectRecord | None:
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
    transaction.run(*finish_step(request.operation, copy.stream_id))
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
        and not request.operation.is_over(now)
    )


def _parameters(request: FinishCopy, now: int) -> Parameters:
    positions = request.keys.positions or (NO_POSITION,)
    return {
        **request.parameters(now),
        "count": len(request.keys),
        "first": positions[0],
        "last": positions[-1],
        "nonces": request.keys.nonces,
        "keys": request.keys.keys,
        "of_shard": quota.my_shard(POSTGRES),
        "expires_at": request.operation.expires_at,
    }
