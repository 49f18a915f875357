"""The rows of a copy: object, segments, reference, operation and charge.

What they hold is said here once; the usual copy writes the same ones (``copy_at_once.py``).
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    LargeBinary,
    Text,
    bindparam,
    case,
    cast,
    exists,
    insert,
    null,
    select,
)
from sqlalchemy.sql.dml import Insert

from calque.store.metabase.accounts import quota
from calque.store.metabase.copies.operations import DROP_CHUNKS, Operation, finish_step
from calque.store.metabase.copies.rules import now, override, source, source_stream
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Step, Transaction
from calque.store.metabase.model.packed_keys import PackedKeys, key_of_row, nonce_of_row
from calque.store.metabase.model.records import ObjectRecord
from calque.store.metabase.model.schema import (
    objects,
    segment_copies,
    segment_slices,
    segments,
)
from calque.store.metabase.objects.begin_object import INSERT_OBJECT

new_stream = bindparam("new_stream", type_=LargeBinary)


def object_of_copy(version: ColumnElement[int]) -> list[ColumnElement[Any]]:
    """The columns of a copy's object: those of ``source``, but for what differs.

    Without ``override`` the metadata is the source's under its re-wrapped key.
    """
    differing: dict[str, ColumnElement[Any]] = {
        "bucket_name": cast(bindparam("bucket"), Text),
        "object_key": cast(bindparam("key", type_=LargeBinary), LargeBinary),
        "version": version,
        "stream_id": cast(new_stream, LargeBinary),
        "created_at": cast(now, BigInteger),
        "encrypted_metadata_nonce": cast(bindparam("metadata_nonce"), LargeBinary),
        "encrypted_metadata": case(
            (override, cast(bindparam("metadata"), LargeBinary)), else_=source.c.encrypted_metadata
        ),
        "encrypted_metadata_encrypted_key": cast(bindparam("metadata_key"), LargeBinary),
        "zombie_deletion_deadline": cast(null(), BigInteger),
    }
    return [
        differing.get(column.name, source.c[column.name]).label(f"new_{column.name}")
        for column in objects.c
    ]


def segments_of_copy(nonce: ColumnElement[bytes], key: ColumnElement[bytes]) -> Insert:
    """The insert of a stream's segments under another stream, with new keys and no pieces."""
    copied = select(
        new_stream,
        segments.c.position,
        now,
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
    ).where(segments.c.stream_id == source_stream)
    return insert(segments).from_select([column.name for column in segments.columns], copied)


COPY_SEGMENTS = Statement(
    "copy the segments of a stream", segments_of_copy(nonce_of_row, key_of_row)
)
INSERT_COPY = Statement("insert a reference", insert(segment_copies))
COPY_SLICES = Statement(
    "copy the slices of a stream",
    insert(segment_slices).from_select(
        [column.name for column in segment_slices.c],
        select(
            new_stream,
            *(column for column in segment_slices.c if column.name != "stream_id"),
        ).where(segment_slices.c.stream_id == source_stream),
    ),
)
_is_whole = (
    select(segment_slices.c.position)
    .where(
        segment_slices.c.stream_id == segments.c.stream_id,
        segment_slices.c.position == segments.c.position,
    )
    .limit(1)
    .scalar_subquery()
    .is_(None)
)
REFER_IF_BORROWED = Statement(
    # What is borrowed by slices alone needs no ancestor.
    "insert a reference if whole segments are borrowed",
    insert(segment_copies).from_select(
        ["stream_id", "ancestor_stream_id"],
        select(new_stream, bindparam("ancestor", type_=LargeBinary)).where(
            exists().where(
                segments.c.stream_id == new_stream,
                segments.c.inline_data.is_(None),
                segments.c.encrypted_size > 0,
                _is_whole,
            )
        ),
    ),
)


def store_copy(
    transaction: Transaction,
    copy: ObjectRecord,
    source_stream_id: bytes,
    ancestor: bytes | None,
    keys: PackedKeys,
    operation: Operation,
    usage: quota.Usage,
    *,
    resumed: bool,
) -> None:
    """Write object, segments, reference (to ``ancestor``, if any), operation and charge."""
    work: list[Step] = [(INSERT_OBJECT, copy._asdict())]
    if len(keys):
        work.append(
            (
                COPY_SEGMENTS,
                {
                    "new_stream": copy.stream_id,
                    "source_stream": source_stream_id,
                    "now": copy.created_at,
                    "nonces": keys.nonces,
                    "keys": keys.keys,
                },
            )
        )
    if ancestor is not None:
        lent = {
            "new_stream": copy.stream_id,
            "source_stream": source_stream_id,
            "ancestor": ancestor,
        }
        work += [(COPY_SLICES, lent), (REFER_IF_BORROWED, lent)]
    if resumed:
        work.append((DROP_CHUNKS, {"of_operation": operation.operation_id}))
    work.append(finish_step(operation, copy.stream_id))
    # Last, since charging a shard locks its row, for which other commits of the project may wait.
    work.append(quota.charge_step(transaction, copy.project_id, usage))
    *_, charged = transaction.run_batch(work)
    quota.settle(transaction, copy.project_id, usage, charged)
