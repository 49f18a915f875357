"""The rows of a prefix that is copied or moved: written set by set, from what was staged."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Integer,
    LargeBinary,
    Text,
    bindparam,
    case,
    cast,
    func,
    insert,
    literal_column,
    null,
    select,
    update,
)

from calque.store.metabase.copies.finish_move import REKEY_SEGMENTS
from calque.store.metabase.copies.store_copy import COPY_SEGMENTS, COPY_SLICES
from calque.store.metabase.engine.statement import POSTGRES, Statement, rewrite_statement
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model import checks as verify
from calque.store.metabase.model.object_keys import key_is
from calque.store.metabase.model.records import NONCE_SIZE, WRAPPED_KEY_SIZE
from calque.store.metabase.model.schema import (
    objects,
    operation_objects,
    segment_copies,
    segment_slices,
    segments,
)
from calque.store.metabase.streams.slices import HOLDERS, SOURCES_OF, count_holders, no_room

_staged = operation_objects.c
_of_operation = _staged.operation_id == bindparam("of_operation", type_=LargeBinary)


_there = objects.alias("there")
_new_bucket: ColumnElement[str] = cast(bindparam("new_bucket"), Text)
_next_version = (
    select(func.coalesce(func.max(_there.c.version), literal_column("0")) + 1)
    .where(
        _there.c.project_id == bindparam("project"),
        _there.c.bucket_name == _new_bucket,
        key_is(_there.c.object_key, _staged.new_key),
    )
    .correlate(operation_objects)
    .scalar_subquery()
)
# Nothing is looked for where there is nothing: most prefixes are moved to one that is new.
_version = case((bindparam("is_new", type_=Integer) == 1, literal_column("1")), else_=_next_version)
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
MOST_KEYS_CUT = 100
"""SQLite reads all keys of an object again for each of its segments. One with more segments gets
them from here, where they stay in memory."""
_has_few = _staged.key_count <= bindparam("most_cut", type_=BigInteger)
WITH_MANY_KEYS = Statement(
    "objects of an operation with many segments",
    select(_staged.stream_id, _staged.new_stream_id).where(_of_operation, ~_has_few),
)
STAGED_KEYS = Statement(
    "keys of an object of an operation",
    select(_staged.nonces, _staged["keys"]).where(
        _of_operation, _staged.stream_id == bindparam("source_stream", type_=LargeBinary)
    ),
)
REKEY_ALL = rewrite_statement(
    "re-key the segments of an operation",
    segments,
    {"encrypted_key_nonce": _nonce, "encrypted_key": _key},
    _of_operation,
    _has_few,
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
        .where(_of_operation, _has_few),
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
# A look for each: of a join PostgreSQL may make one that counts the borrowers of every original
# there is.
_lender = (
    select(_made.c.ancestor_stream_id)
    .where(_made.c.stream_id == _staged.new_stream_id)
    .limit(1)
    .scalar_subquery()
)
_lent = select(_staged.stream_id, _lender.label("lender")).where(_of_operation).subquery("lent")
CROWDED = Statement(
    "an original of an operation with too many borrowers",
    select(_lent.c.stream_id)
    .where(count_holders(_lent.c.lender) > literal_column(str(verify.MAX_LIVE_COPIES), BigInteger))
    .limit(1),
)


def move_rows(transaction: Transaction, values: dict[str, Any]) -> None:
    """Give every staged object its new name and keys; streams, pieces and references stay."""
    transaction.run(MOVE_OBJECTS, values)
    _run_on_segments(transaction, REKEY_ALL, REKEY_SEGMENTS, values)


def copy_rows(transaction: Transaction, values: dict[str, Any]) -> None:
    """Copy every staged object; ``ResourceExhausted`` where an original has borrowers enough."""
    transaction.run(COPY_OBJECTS, values)
    _run_on_segments(transaction, COPY_ALL_SEGMENTS, COPY_SEGMENTS, values)
    _copy_slices(transaction, values)
    transaction.run(REFER_ALL, values)
    if transaction.rows(CROWDED, values):
        raise no_room()


def _run_on_segments(
    transaction: Transaction, of_all: Statement, of_one: Statement, values: dict[str, Any]
) -> None:
    """The segments of all objects at once; on SQLite those of large objects one by one."""
    if transaction.dialect == POSTGRES:
        transaction.run(of_all, {**values, "most_cut": verify.MAX_KEYS_PER_CALL})
        return
    values = {**values, "most_cut": MOST_KEYS_CUT}
    transaction.run(of_all, values)
    for old, new in transaction.rows(WITH_MANY_KEYS, values):
        nonces, keys = transaction.rows(STAGED_KEYS, {**values, "source_stream": old})[0]
        streams = {"of_stream": old, "source_stream": old, "new_stream": new}
        transaction.run(of_one, {**values, **streams, "nonces": nonces, "keys": keys})


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
