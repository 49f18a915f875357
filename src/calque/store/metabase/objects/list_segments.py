"""The segments of a stream, with the pieces to read them from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import bindparam, select

from calque.errors import FailedPrecondition, InvalidInput, NotFound
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model import checks as verify
from calque.store.metabase.model.records import (
    ObjectLocation,
    ObjectRecord,
    Position,
    SegmentRecord,
)
from calque.store.metabase.model.schema import PENDING, segments
from calque.store.metabase.objects.get_object import require_object
from calque.store.metabase.streams.ancestors import resolve
from calque.store.metabase.streams.lookup import record_by_stream

MAX_PAGE = 1000
BEFORE_ALL = -1
UNBOUNDED = 2**62

SEGMENTS_AFTER = Statement(
    "segments after a position",
    select(segments)
    .where(
        segments.c.stream_id == bindparam("of_stream"),
        segments.c.position > bindparam("after"),
    )
    .order_by(segments.c.position)
    .limit(bindparam("page")),
)
SEGMENTS_IN_RANGE = Statement(
    "segments of a byte range",
    select(segments)
    .where(
        segments.c.stream_id == bindparam("of_stream"),
        segments.c.position > bindparam("after"),
        segments.c.plain_offset < bindparam("range_limit"),
        segments.c.plain_offset + segments.c.plain_size > bindparam("range_start"),
    )
    .order_by(segments.c.position)
    .limit(bindparam("page")),
)


class SegmentPage(NamedTuple):
    """An object, some of its segments in order, and whether more follow."""

    object: ObjectRecord
    segments: list[SegmentRecord]
    more: bool


@dataclass(frozen=True)
class ListSegments:
    """Segments of the object at a location, or of a pending upload's stream.

    ``stream_id`` pins the contents: of a committed object it may be left out. The byte
    range is half-open and in plain bytes.
    """

    location: ObjectLocation
    stream_id: bytes | None = None
    pending: bool = False
    cursor: Position | None = None
    limit: int = MAX_PAGE
    range_start: int | None = None
    range_limit: int | None = None

    def __post_init__(self) -> None:
        verify.location(self.location)
        if self.stream_id is not None:
            verify.stream_id(self.stream_id)
        if self.pending and (self.stream_id is None or self.is_range):
            raise InvalidInput("a pending upload is listed by its stream and without a range")
        if self.cursor is not None:
            self.cursor.check()
        if not 1 <= self.limit <= MAX_PAGE:
            raise InvalidInput(f"a page holds 1 to {MAX_PAGE} segments, not {self.limit}")
        start, limit = self.range_start or 0, self.range_limit
        if start < 0 or (limit is not None and limit < start):
            raise InvalidInput(f"byte range {start}–{limit} is not a range")

    @property
    def is_range(self) -> bool:
        """Whether only a byte range is wanted."""
        return self.range_start is not None or self.range_limit is not None


def list_segments(database: Database, request: ListSegments) -> SegmentPage:
    """One page; a copy's segments carry the pieces of its ancestor."""

    def work(transaction: Transaction) -> SegmentPage:
        record = _object(transaction, request)
        statement = SEGMENTS_IN_RANGE if request.is_range else SEGMENTS_AFTER
        parameters: dict[str, object] = {
            "of_stream": record.stream_id,
            "after": request.cursor.encode() if request.cursor else BEFORE_ALL,
            "page": request.limit + 1,
        }
        if request.is_range:
            limit = request.range_limit
            parameters["range_start"] = request.range_start or 0
            parameters["range_limit"] = UNBOUNDED if limit is None else limit
        rows = transaction.rows(statement, parameters)
        page = [SegmentRecord(*row) for row in rows[: request.limit]]
        return SegmentPage(record, resolve(transaction, page), len(rows) > request.limit)

    return database.read(work)


def _object(transaction: Transaction, request: ListSegments) -> ObjectRecord:
    if request.pending:
        upload = record_by_stream(transaction, request.stream_id or b"")
        if upload is None or upload.status != PENDING or upload.location != request.location:
            raise NotFound("the upload is not there any more: it was committed or aborted")
        return upload
    record = require_object(transaction, request.location)
    if request.stream_id is not None and record.stream_id != request.stream_id:
        raise FailedPrecondition("the object was replaced since it was first read")
    return record
