"""The rows of a copy, written.

SQLite takes one statement after the other at no cost. On PostgreSQL the usual copy is one
statement, which inserts and charges the quota in common table expressions, and it goes out
together with the lock that it needs.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import LargeBinary, bindparam, func, insert, literal_column, null, select
from sqlalchemy.dialects import postgresql
from sqlalchemy.sql.dml import Insert

from calque.store.metabase import quota
from calque.store.metabase.begin_object import INSERT_OBJECT
from calque.store.metabase.database import Parameters, Transaction
from calque.store.metabase.locks import lock_families
from calque.store.metabase.lookup import Found
from calque.store.metabase.operations import DROP_CHUNKS, Operation, finishing
from calque.store.metabase.schema import objects, operations, segment_copies, segments
from calque.store.metabase.segment_keys import PackedKeys, key_of_row, nonce_of_row
from calque.store.metabase.statement import Statement
from calque.store.metabase.values import ObjectRecord

_copied_segments = insert(segments).from_select(
    [column.name for column in segments.columns],
    select(
        bindparam("new_stream", type_=LargeBinary),
        segments.c.position,
        bindparam("now", type_=segments.c.created_at.type),
        null(),  # the time of repair is the ancestor's
        segments.c.expires_at,
        segments.c.root_piece_id,
        nonce_of_row,
        key_of_row,
        segments.c.encrypted_size,
        segments.c.plain_size,
        segments.c.plain_offset,
        segments.c.encrypted_etag,
        segments.c.redundancy,
        segments.c.inline_data,
        null(),  # the pieces are the ancestor's
        segments.c.placement,
    ).where(segments.c.stream_id == bindparam("source_stream")),
)


def _prefixed(into: Insert, prefix: str) -> Insert:
    """The insert with parameters of its own names, to stand beside others."""
    names = [column.name for column in into.table.c]
    return into.values({name: bindparam(f"{prefix}_{name}") for name in names})


_new_object = _prefixed(insert(objects), "object")
_new_reference = _prefixed(insert(segment_copies), "reference")
_new_operation = _prefixed(postgresql.insert(operations), "operation")

COPY_SEGMENTS = Statement("copy the segments of a stream", _copied_segments)
INSERT_COPY = Statement("insert a reference", insert(segment_copies))
_charged = quota.CHARGE_SHARD.returning(literal_column("1").label("one")).cte("charged")
STORE_COPY = Statement(
    "store a copy and charge a shard",
    postgres=select(
        select(func.count()).select_from(_charged).scalar_subquery(),
        select(func.count())
        .where(segment_copies.c.ancestor_stream_id == bindparam("reference_ancestor_stream_id"))
        .scalar_subquery(),
    ).add_cte(
        _new_object.cte("new_object"),
        _copied_segments.cte("new_segments"),
        _new_reference.cte("new_reference"),
        _new_operation.cte("new_operation"),
    ),
)
"""Gives how many shards were charged and how many copies the ancestor had before."""


def store_at_once(
    transaction: Transaction,
    copy: ObjectRecord,
    source: Found,
    keys: PackedKeys,
    operation: Operation,
    usage: quota.Usage,
) -> int:
    """Lock the family of a remote source and write all rows of its copy, in one trip.

    Only PostgreSQL can. Returns how many copies the family had; the caller, who must still
    refuse one too many, rolls back by raising.
    """
    ancestor = source.ancestor or source.object.stream_id
    charging = quota.charging(transaction, copy.project_id, usage)[1]
    parameters = _together(copy, source.object, ancestor, keys, operation, charging)
    family = [(source.object.stream_id, source.ancestor)]
    answers = lock_families(transaction, family, [(STORE_COPY, parameters)])
    charged, copies = answers[0][0]
    quota.settle(transaction, copy.project_id, usage, charged)
    return int(copies)


def store_copy(
    transaction: Transaction,
    copy: ObjectRecord,
    source: ObjectRecord,
    ancestor: bytes | None,
    keys: PackedKeys,
    operation: Operation,
    usage: quota.Usage,
    *,
    resumed: bool,
) -> None:
    """Write object, segments, reference (to ``ancestor``, if any), operation and charge."""
    work: list[tuple[Statement, Parameters]] = [(INSERT_OBJECT, copy._asdict())]
    if len(keys):
        work.append((COPY_SEGMENTS, _copying(source, copy, keys)))
    if ancestor is not None:
        reference = {"stream_id": copy.stream_id, "ancestor_stream_id": ancestor}
        work.append((INSERT_COPY, reference))
    if resumed:
        work.append((DROP_CHUNKS, {"of_operation": operation.operation_id}))
    work.append(finishing(operation, copy.stream_id))
    work.append(quota.charging(transaction, copy.project_id, usage))
    *_, charged = transaction.run_batch(work)
    quota.settle(transaction, copy.project_id, usage, charged)


def _copying(source: ObjectRecord, copy: ObjectRecord, keys: PackedKeys) -> dict[str, Any]:
    return {
        "new_stream": copy.stream_id,
        "source_stream": source.stream_id,
        "now": copy.created_at,
        "nonces": keys.nonces,
        "keys": keys.keys,
    }


def _together(
    copy: ObjectRecord,
    source: ObjectRecord,
    ancestor: bytes,
    keys: PackedKeys,
    operation: Operation,
    charging: Parameters,
) -> dict[str, Any]:
    record = finishing(operation, copy.stream_id)[1]
    return {
        **charging,
        **_copying(source, copy, keys),
        **{f"object_{name}": value for name, value in copy._asdict().items()},
        **{f"operation_{name}": value for name, value in record.items()},
        "reference_stream_id": copy.stream_id,
        "reference_ancestor_stream_id": ancestor,
    }
