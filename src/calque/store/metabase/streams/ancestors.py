"""Where the pieces of a borrowed segment are: the one place that resolves ancestors and slices.

Download, segment lists, audit, repair and exit all come through :func:`resolve`. A
segment that holds its own pieces or inline data costs nothing extra here.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from sqlalchemy import and_, bindparam, select

from calque.errors import IntegrityError
from calque.store.metabase.engine.locks import ancestor_of
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model.records import Origin, Position, SegmentRecord
from calque.store.metabase.model.schema import segment_slices, segments

ANCESTOR_SEGMENTS = Statement(
    "segments of an ancestor",
    select(
        segments.c.position,
        segments.c.repaired_at,
        segments.c.root_piece_id,
        segments.c.redundancy,
        segments.c.remote_alias_pieces,
        segments.c.placement,
    )
    .where(
        segments.c.stream_id == bindparam("ancestor"),
        segments.c.position.between(bindparam("first"), bindparam("last")),
    )
    .order_by(segments.c.position),
)


SLICED_SEGMENTS = Statement(
    "segments that the slices of a stream are cut from",
    select(
        segment_slices.c.position,
        segment_slices.c.source_position,
        segment_slices.c.skip,
        segments.c.plain_size,
        segments.c.encrypted_size,
        segments.c.repaired_at,
        segments.c.root_piece_id,
        segments.c.redundancy,
        segments.c.remote_alias_pieces,
        segments.c.placement,
    )
    .select_from(
        segment_slices.join(
            segments,
            and_(
                segments.c.stream_id == segment_slices.c.source_stream_id,
                segments.c.position == segment_slices.c.source_position,
            ),
        )
    )
    .where(
        segment_slices.c.stream_id == bindparam("holder"),
        segment_slices.c.position.between(bindparam("first"), bindparam("last")),
    ),
)


def resolve(transaction: Transaction, found: Sequence[SegmentRecord]) -> list[SegmentRecord]:
    """``found`` with the pieces of every borrowed segment filled in from where they are.

    Pieces, root piece id, redundancy, placement and time of repair are those of the ancestor, or
    of the segment that a slice is cut from, as they are now; a slice is told its ``origin``.
    Raises ``IntegrityError`` when a borrowed segment has neither: it cannot be read.
    """
    resolved: list[SegmentRecord] = []
    for stream_id, group in groupby(found, key=lambda segment: segment.stream_id):
        own = list(group)
        borrowed = [segment.position for segment in own if segment.is_borrowed]
        if borrowed:
            own = _fill_all(transaction, stream_id, own, min(borrowed), max(borrowed))
        resolved.extend(own)
    return resolved


def _fill_all(
    transaction: Transaction, stream_id: bytes, own: list[SegmentRecord], first: int, last: int
) -> list[SegmentRecord]:
    rows = transaction.rows(SLICED_SEGMENTS, {"holder": stream_id, "first": first, "last": last})
    cut: _LentPieces = {row[0]: tuple(row[5:]) for row in rows}
    origins = {row[0]: Origin(*row[1:5]) for row in rows}
    own = [
        _fill(segment, cut)._replace(origin=origins[segment.position])
        if segment.position in origins
        else segment
        for segment in own
    ]
    left = [segment.position for segment in own if segment.is_borrowed]
    if left:
        lent = _read_lender(transaction, stream_id, min(left), max(left))
        own = [_fill(segment, lent) if segment.is_borrowed else segment for segment in own]
    return own


_LentPieces = dict[int, tuple[int | None, bytes, int, bytes, int]]


def _read_lender(transaction: Transaction, stream_id: bytes, first: int, last: int) -> _LentPieces:
    ancestor = ancestor_of(transaction, stream_id)
    if ancestor is None:
        raise IntegrityError(f"stream {stream_id.hex()} has neither pieces nor an ancestor")
    rows = transaction.rows(ANCESTOR_SEGMENTS, {"ancestor": ancestor, "first": first, "last": last})
    return {position: tuple(rest) for position, *rest in rows}


def _fill(segment: SegmentRecord, lent: _LentPieces) -> SegmentRecord:
    source = lent.get(segment.position)
    if source is None or source[3] is None:
        where = Position.decode(segment.position)
        raise IntegrityError(
            f"the ancestor of stream {segment.stream_id.hex()} has no pieces at "
            f"{where.part}/{where.number}"
        )
    repaired_at, root_piece_id, redundancy, pieces, placement = source
    return segment._replace(
        repaired_at=repaired_at,
        root_piece_id=root_piece_id,
        redundancy=redundancy,
        remote_alias_pieces=pieces,
        placement=placement,
    )
