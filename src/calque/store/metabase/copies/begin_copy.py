"""Begin a copy or a move: read what the client must re-wrap. Nothing is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import and_, bindparam, select

from calque.errors import FailedPrecondition, InvalidInput
from calque.store.metabase.accounts.buckets import BUCKET_EXISTS, require_bucket
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model import checks as verify
from calque.store.metabase.model.records import (
    ObjectLocation,
    ObjectRecord,
    Position,
    SegmentKey,
)
from calque.store.metabase.model.schema import buckets, objects, segments
from calque.store.metabase.objects.get_object import require_record
from calque.store.metabase.objects.list_segments import BEFORE_ALL
from calque.store.metabase.streams.lookup import AT_KEY, IS_COMMITTED, RECORD_AT, at

KEYS_AT = Statement(
    "segment keys of the object at a key",
    select(segments.c.position, segments.c.encrypted_key_nonce, segments.c.encrypted_key)
    .select_from(segments.join(objects, objects.c.stream_id == segments.c.stream_id))
    .where(*AT_KEY, IS_COMMITTED, segments.c.position > bindparam("after"))
    .order_by(segments.c.position)
    .limit(bindparam("page")),
)
_target = select(
    select(buckets.c.placement)
    .where(
        buckets.c.project_id == bindparam("project_id"), buckets.c.name == bindparam("to_bucket")
    )
    .scalar_subquery()
    .label("placement")
).subquery("target")
SMALL_SOURCE = Statement(
    "source of a small copy",
    select(
        _target.c.placement,
        segments.c.position,
        segments.c.encrypted_key_nonce,
        segments.c.encrypted_key,
        objects,
    )
    .select_from(
        _target.join(objects, and_(*AT_KEY, IS_COMMITTED)).join(
            segments, segments.c.stream_id == objects.c.stream_id
        )
    )
    .limit(2),
)
"""Bucket, object and key of an object with one segment; a second row says it has more."""


@dataclass(frozen=True)
class BeginCopy:
    """Copy (or move) ``source`` to ``target``; later pages name the stream and a cursor."""

    source: ObjectLocation
    target: ObjectLocation
    stream_id: bytes | None = None
    cursor: Position | None = None
    limit: int = verify.MAX_KEYS_PER_CALL

    def __post_init__(self) -> None:
        verify.location(self.source)
        verify.location(self.target, "new")
        if self.stream_id is not None:
            verify.stream_id(self.stream_id)
        if self.cursor is not None:
            self.cursor.check()
        if not 1 <= self.limit <= verify.MAX_KEYS_PER_CALL:
            raise InvalidInput(
                f"a page holds 1 to {verify.MAX_KEYS_PER_CALL} segment keys, not {self.limit}"
            )


class CopyPage(NamedTuple):
    """The source, a page of its segment keys in order, and whether more follow."""

    source: ObjectRecord
    keys: list[SegmentKey]
    more: bool


def begin_copy(database: Database, request: BeginCopy) -> CopyPage:
    """What Finish will need; ``NotFound`` names the source's or the destination's bucket."""
    small = _small(database, request) if request.cursor is None else None
    return small or _page(database, request)


def _small(database: Database, request: BeginCopy) -> CopyPage | None:
    """The page of a live object with one segment, in one trip; ``None`` for all else."""
    parameters = {**at(request.source), "to_bucket": request.target.bucket}
    rows = database.read_rows(SMALL_SOURCE, parameters)
    if len(rows) != 1 or request.source.project_id != request.target.project_id:
        return None
    placement, position, nonce, key, *fields = rows[0]
    source = ObjectRecord(*fields)
    if placement is None or source.is_expired(database.clock()):
        return None
    if request.stream_id not in (None, source.stream_id):
        return None
    return CopyPage(source, [SegmentKey(position, nonce, key)], more=False)


def _page(database: Database, request: BeginCopy) -> CopyPage:
    """A page of the keys of any object, or why there is none."""

    def work(transaction: Transaction) -> CopyPage:
        page = {
            **at(request.source),
            "after": request.cursor.encode() if request.cursor else BEFORE_ALL,
            "page": request.limit + 1,
        }
        sources, bucket, rows = transaction.batch(
            [
                (RECORD_AT, at(request.source)),
                (BUCKET_EXISTS, at(request.target)),
                (KEYS_AT, page),
            ]
        )
        source = require_record(transaction, sources, request.source, "source")
        if request.stream_id is not None and source.stream_id != request.stream_id:
            raise FailedPrecondition("the source was replaced since the operation began")
        require_bucket(bucket, request.target.bucket, "destination")
        verify.operation_keys(source.segment_count)
        keys = [SegmentKey(*row) for row in rows[: request.limit]]
        return CopyPage(source, keys, len(rows) > request.limit)

    return database.read(work)
