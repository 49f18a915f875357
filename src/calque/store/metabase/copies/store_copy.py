"""The rows of a copy, written one statement after the other."""

from __future__ import annotations

from typing import Any

from sqlalchemy import ColumnElement, LargeBinary, bindparam, insert, null, select
from sqlalchemy.sql.dml import Insert

from calque.store.metabase.accounts import quota
from calque.store.metabase.copies.operations import DROP_CHUNKS, Operation, finishing
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Parameters, Transaction
from calque.store.metabase.model.packed_keys import PackedKeys, key_of_row, nonce_of_row
from calque.store.metabase.model.records import ObjectRecord
from calque.store.metabase.model.schema import segment_copies, segments
from calque.store.metabase.objects.begin_object import INSERT_OBJECT


def copied_segments(
    nonce: ColumnElement[bytes], key: ColumnElement[bytes], *also: ColumnElement[bool]
) -> Insert:
    """The insert of a stream's segments under another stream, with new keys and no pieces."""
    copied = select(
        bindparam("new_stream", type_=LargeBinary),
        segments.c.position,
        bindparam("now", type_=segments.c.created_at.type),
        null(),  # the time of repair is the ancestor's
        segments.c.expires_at,
        segments.c.root_piece_id,
        nonce,
        key,
        segments.c.encrypted_size,
        segments.c.plain_size,
        segments.c.plain_offset,
        segments.c.encrypted_etag,
        segments.c.redundancy,
        segments.c.inline_data,
        null(),  # the pieces are the ancestor's
        segments.c.placement,
    ).where(segments.c.stream_id == bindparam("source_stream"), *also)
    return insert(segments).from_select([column.name for column in segments.columns], copied)


COPY_SEGMENTS = Statement(
    "copy the segments of a stream", copied_segments(nonce_of_row, key_of_row)
)
INSERT_COPY = Statement("insert a reference", insert(segment_copies))


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
        new = copying(source.stream_id, copy.stream_id, copy.created_at, keys)
        work.append((COPY_SEGMENTS, new))
    if ancestor is not None:
        reference = {"stream_id": copy.stream_id, "ancestor_stream_id": ancestor}
        work.append((INSERT_COPY, reference))
    if resumed:
        work.append((DROP_CHUNKS, {"of_operation": operation.operation_id}))
    work.append(finishing(operation, copy.stream_id))
    work.append(quota.charging(transaction, copy.project_id, usage))
    *_, charged = transaction.run_batch(work)
    quota.settle(transaction, copy.project_id, usage, charged)


def copying(source_stream: bytes, new_stream: bytes, now: int, keys: PackedKeys) -> dict[str, Any]:
    """The parameters of :func:`copied_segments`."""
    return {
        "new_stream": new_stream,
        "source_stream": source_stream,
        "now": now,
        "nonces": keys.nonces,
        "keys": keys.keys,
    }
