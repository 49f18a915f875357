"""Where the pieces of a copied segment are: the one place that resolves ancestors.

Download, segment lists, audit, repair and exit all come through :func:`resolve`. A
segment that holds its own pieces or inline data costs nothing extra here.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from sqlalchemy import bindparam, select

from calque.errors import IntegrityError
from calque.store.metabase.engine.locks import ancestor_of
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model.records import Position, SegmentRecord
from calque.store.metabase.model.schema import segments

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


def resolve(transaction: Transaction, found: Sequence[SegmentRecord]) -> list[SegmentRecord]:
    """``found`` with the pieces of every borrowed segment filled in from its ancestor.

    Pieces, root piece id, redundancy, placement and time of repair are the ancestor's, as
    they are now. Raises ``IntegrityError`` when a copy has no ancestor: it cannot be read.
    """
    resolved: list[SegmentRecord] = []
    for stream_id, group in groupby(found, key=lambda segment: segment.stream_id):
        own = list(group)
        borrowed = [segment.position for segment in own if segment.is_borrowed]
        if borrowed:
            lent = _read_lender(transaction, stream_id, min(borrowed), max(borrowed))
            own = [_fill(segment, lent) if segment.is_borrowed else segment for segment in own]
        resolved.extend(own)
    return resolved


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
