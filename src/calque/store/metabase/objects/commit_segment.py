"""Commit a segment of an upload: remote, with pieces on nodes, or inline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, delete, insert, literal_column, select

from calque.errors import FailedPrecondition, InvalidInput, NotFound
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model import checks as verify
from calque.store.metabase.model.records import (
    NO_REDUNDANCY,
    ROOT_PIECE_ID_SIZE,
    FreedSegment,
    Position,
    Redundancy,
    SegmentRecord,
)
from calque.store.metabase.model.schema import freed_segments, objects, segments
from calque.store.metabase.streams.slices import forget_slices_at, release

MAX_ETAG_SIZE = 1024
MAX_SEGMENT_SIZE = 2**40
NO_ROOT_PIECE = b""

PENDING_STREAM = Statement(
    # Shared: the segments of one upload arrive in parallel; commit and abort wait for them.
    "pending upload",
    select(objects.c.expires_at)
    .where(
        objects.c.stream_id == bindparam("stream_id"),
        objects.c.status == literal_column("1"),
    )
    .with_for_update(read=True),
)
INSERT_SEGMENT = Statement("insert a segment", insert(segments))
ROOT_AT = Statement(
    "root piece id of a segment",
    select(segments.c.root_piece_id).where(
        segments.c.stream_id == bindparam("of_stream"),
        segments.c.position == bindparam("at_position"),
    ),
)
FREE_SEGMENT = Statement("queue the pieces of a replaced segment", insert(freed_segments))
TAKE_SEGMENT = Statement(
    "take a segment away",
    delete(segments)
    .where(
        segments.c.stream_id == bindparam("of_stream"),
        segments.c.position == bindparam("at_position"),
    )
    .returning(segments.c.root_piece_id, segments.c.remote_alias_pieces, segments.c.created_at),
)


@dataclass(frozen=True)
class CommitSegment:
    """A segment whose pieces lie on nodes (``alias_pieces``), or that is kept inline.

    ``begun_at`` is when its pieces were asked for: it does not replace what was committed since.
    Otherwise a call that is repeated late would bring back pieces that were freed meanwhile.
    """

    stream_id: bytes
    position: Position
    encrypted_key_nonce: bytes
    encrypted_key: bytes
    encrypted_size: int
    plain_size: int
    encrypted_etag: bytes | None = None
    placement: int = 0
    root_piece_id: bytes = NO_ROOT_PIECE
    redundancy: Redundancy | None = None
    alias_pieces: bytes | None = None
    inline_data: bytes | None = None
    begun_at: int | None = None

    def __post_init__(self) -> None:
        verify.stream_id(self.stream_id)
        self.position.check()
        verify.wrapped_key(self.encrypted_key, self.encrypted_key_nonce)
        if not 0 <= self.plain_size <= MAX_SEGMENT_SIZE:
            raise InvalidInput(f"plain size {self.plain_size} is out of range")
        if len(self.encrypted_etag or b"") > MAX_ETAG_SIZE:
            raise InvalidInput(f"encrypted etag is longer than {MAX_ETAG_SIZE} bytes")
        if self.inline_data is not None:
            self._verify_inline()
        else:
            self._verify_remote()
        if self.plain_size > self.encrypted_size:
            raise InvalidInput(
                f"{self.plain_size} plain bytes cannot be {self.encrypted_size} when encrypted"
            )

    def _verify_inline(self) -> None:
        if self.alias_pieces is not None or self.redundancy is not None:
            raise InvalidInput("a segment is inline or has pieces, not both")
        if self.encrypted_size != len(self.inline_data or b""):
            raise InvalidInput("encrypted size differs from the inline data")

    def _verify_remote(self) -> None:
        if not self.alias_pieces or self.redundancy is None:
            raise InvalidInput("pieces or redundancy are missing")
        verify.exactly(self.root_piece_id, ROOT_PIECE_ID_SIZE, "root piece id")
        self.redundancy.check()
        if not 0 < self.encrypted_size <= MAX_SEGMENT_SIZE:
            raise InvalidInput(f"encrypted size {self.encrypted_size} is out of range")


def commit_segment(database: Database, request: CommitSegment) -> list[FreedSegment]:
    """Record the segment; one at the same position is replaced, queued and handed back.

    A repeat after success changes nothing, also when the upload is committed by then.
    """

    def work(transaction: Transaction) -> list[FreedSegment]:
        where = {"of_stream": request.stream_id, "at_position": request.position.encode()}
        pending, replaced = transaction.batch(
            [(PENDING_STREAM, {"stream_id": request.stream_id}), (TAKE_SEGMENT, where)]
        )
        if not pending:
            raise NotFound("the upload is not there any more: it was committed or aborted")
        # Two clients may upload one part at once: whoever commits first has it, the other is told.
        _refuse_late(request, replaced)
        # A repeat of this very call is as old as the first.
        same = [at for root, _, at in replaced if root and root == request.root_piece_id]
        record = segment_record(request, pending[0][0], same[0] if same else transaction.now)
        transaction.run(INSERT_SEGMENT, record._asdict())
        # It replaces its own row, and those pieces stay.
        freed = [
            FreedSegment(root, pieces)
            for root, pieces, _ in replaced
            if pieces is not None and root != request.root_piece_id
        ]
        for each in freed:
            transaction.run(FREE_SEGMENT, {**each._asdict(), "freed_at": transaction.now})
        return freed

    try:
        return database.write(work)
    except NotFound:
        # The answer to this very call may have been lost, and the upload committed since.
        if request.alias_pieces and _is_there(database, request):
            return []
        raise


def drop_segments(
    transaction: Transaction, stream_id: bytes, positions: Sequence[int]
) -> list[FreedSegment]:
    """Take segments of an upload away; what their pieces were is queued and handed back."""
    released = forget_slices_at(transaction, stream_id, positions)
    taken = transaction.batch(
        [(TAKE_SEGMENT, {"of_stream": stream_id, "at_position": each}) for each in positions]
    )
    freed = [
        FreedSegment(root, pieces)
        for rows in taken
        for root, pieces, _ in rows
        if pieces is not None
    ]
    transaction.run_batch(
        [(FREE_SEGMENT, {**each._asdict(), "freed_at": transaction.now}) for each in freed]
    )
    return freed + release(transaction, released)


def _refuse_late(request: CommitSegment, replaced: Sequence[Any]) -> None:
    for root, pieces, created_at in replaced:
        if root and pieces is None:
            raise FailedPrecondition(
                "a range of another object stands at this position", hint="Upload the part again."
            )
        if request.begun_at is None or root == request.root_piece_id:
            continue
        if created_at > request.begun_at:
            raise FailedPrecondition(
                "another segment was committed at this position since this one was begun",
                hint="Upload the part again.",
            )


def _is_there(database: Database, request: CommitSegment) -> bool:
    where = {"of_stream": request.stream_id, "at_position": request.position.encode()}
    return database.read_rows(ROOT_AT, where) == [(request.root_piece_id,)]


def segment_record(request: CommitSegment, expires_at: int | None, now: int) -> SegmentRecord:
    """The row of a segment."""
    redundancy = request.redundancy.encode() if request.redundancy else NO_REDUNDANCY
    return SegmentRecord(
        stream_id=request.stream_id,
        position=request.position.encode(),
        created_at=now,
        repaired_at=None,
        expires_at=expires_at,
        root_piece_id=request.root_piece_id,
        encrypted_key_nonce=request.encrypted_key_nonce,
        encrypted_key=request.encrypted_key,
        encrypted_size=request.encrypted_size,
        plain_size=request.plain_size,
        plain_offset=0,
        encrypted_etag=request.encrypted_etag,
        redundancy=redundancy,
        inline_data=request.inline_data,
        remote_alias_pieces=request.alias_pieces,
        placement=request.placement,
    )
