"""Slices: segments that are parts of other segments, and those that lend them their pieces.

A slice names the row that holds the pieces, never another borrower. When the object of that row
goes and a whole copy inherits its pieces, its slices are pointed at the heir (``promotion``). Where
there is no heir, the rows that have slices stay behind without an object, *kept*, as they are: a
scan of all segments finds their pieces as it finds any others. The last slice takes a kept row
with it.

The caller holds the locks of ``engine/locks.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    ClauseElement,
    ColumnElement,
    LargeBinary,
    bindparam,
    case,
    delete,
    distinct,
    exists,
    func,
    insert,
    literal_column,
    select,
    update,
)

from calque.errors import CalqueError, ResourceExhausted
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Step, Transaction
from calque.store.metabase.model import checks as verify
from calque.store.metabase.model.records import FreedSegment
from calque.store.metabase.model.schema import (
    freed_segments,
    objects,
    segment_copies,
    segment_slices,
    segments,
)
from calque.store.metabase.streams.given_streams import give_streams, statement_of_streams

_slices = segment_slices.c

INSERT_SLICE = Statement("insert a slice", insert(segment_slices))
SLICES_OF = Statement(
    "slices of a stream",
    select(segment_slices)
    .where(_slices.stream_id == bindparam("of_stream"))
    .order_by(_slices.position),
)
SLICED_STREAMS = statement_of_streams(
    "those of many streams that have slices",
    _slices.stream_id,
    lambda given: select(_slices.stream_id).distinct().where(given),
)
FORGET_SLICES = Statement(
    "forget the slices of a stream",
    delete(segment_slices).where(_slices.stream_id == bindparam("of_stream")),
)
FORGET_SLICE = Statement(
    "forget a slice",
    delete(segment_slices)
    .where(
        _slices.stream_id == bindparam("of_stream"), _slices.position == bindparam("at_position")
    )
    .returning(_slices.source_stream_id, _slices.source_position),
)
REPOINT_SLICES = Statement(
    "re-point slices",
    update(segment_slices)
    .where(_slices.source_stream_id == bindparam("ancestor"))
    .values(source_stream_id=bindparam("heir")),
)

# Asked of each segment by itself: of NOT EXISTS PostgreSQL makes a join, which compares each of
# 10,000 segments with each slice where statistics promise few.
has_no_slices = (
    select(_slices.source_position)
    .where(
        _slices.source_stream_id == segments.c.stream_id,
        _slices.source_position == segments.c.position,
    )
    .limit(1)
    .scalar_subquery()
    .is_(None)
)
"""Whether a segment lends its pieces to no slice."""

_is_abandoned = (
    segments.c.stream_id == bindparam("of_stream"),
    segments.c.position == bindparam("at_position"),
    ~exists().where(objects.c.stream_id == segments.c.stream_id),
    has_no_slices,
)


def queue_pieces(*where: ColumnElement[bool]) -> ClauseElement:
    """The insert that queues the pieces of some segments, and gives them back."""
    return (
        insert(freed_segments)
        .from_select(
            ["root_piece_id", "alias_pieces", "freed_at"],
            select(
                segments.c.root_piece_id,
                segments.c.remote_alias_pieces,
                bindparam("now", type_=BigInteger),
            ).where(segments.c.remote_alias_pieces.is_not(None), *where),
        )
        .returning(freed_segments.c.root_piece_id, freed_segments.c.alias_pieces)
    )


FREE_KEPT = Statement(
    "queue the pieces of a kept segment without slices", queue_pieces(*_is_abandoned)
)
DROP_KEPT = Statement("drop a kept segment without slices", delete(segments).where(*_is_abandoned))


def count_holders(ancestor: ColumnElement[bytes]) -> ColumnElement[int]:
    """How many streams borrow pieces of ``ancestor``: whole copies, and those with slices."""
    copies = (
        select(func.count())
        .where(segment_copies.c.ancestor_stream_id == ancestor)
        .scalar_subquery()
    )
    holders = (
        select(func.count(distinct(_slices.stream_id)))
        .where(_slices.source_stream_id == ancestor)
        .scalar_subquery()
    )
    return copies + holders


HOLDERS = Statement(
    "streams that borrow pieces of a stream",
    select(count_holders(bindparam("ancestor", type_=LargeBinary))),
)
_holds = (
    select(literal_column("1"))
    .where(
        _slices.stream_id == bindparam("of_stream"),
        _slices.source_stream_id == bindparam("ancestor"),
    )
    .limit(1)
    .scalar_subquery()
)
OTHER_HOLDERS = Statement(
    # Not counted for each of 10,000 parts that come from one source.
    "streams that borrow pieces of a stream, unless one has slices of it already",
    select(
        case(
            (_holds.is_(None), count_holders(bindparam("ancestor", type_=LargeBinary))),
            else_=literal_column("0"),
        )
    ),
)
SOURCES_OF = Statement(
    "streams that the slices of a stream are cut from",
    select(_slices.source_stream_id).distinct().where(_slices.stream_id == bindparam("of_stream")),
)


class Slice(NamedTuple):
    """A row of ``segment_slices``."""

    stream_id: bytes
    position: int
    source_stream_id: bytes
    source_position: int
    skip: int
    length: int


Source = tuple[bytes, int]
"""A segment that lends its pieces: stream and position."""


def slices_of(transaction: Transaction, streams: Sequence[bytes]) -> dict[bytes, list[Slice]]:
    """The slices of those of ``streams`` that have any."""
    if len(streams) > 1:
        rows = transaction.rows(SLICED_STREAMS, give_streams(transaction, streams))
        streams = [row[0] for row in rows]
    answers = transaction.batch([(SLICES_OF, {"of_stream": stream}) for stream in streams])
    return {
        stream: [Slice(*row) for row in rows]
        for stream, rows in zip(streams, answers, strict=True)
        if rows
    }


def forget_slices(transaction: Transaction, streams: Sequence[bytes]) -> set[Source]:
    """Take the slices of ``streams`` away; from which segments they were cut."""
    found = slices_of(transaction, streams)
    transaction.run_batch([(FORGET_SLICES, {"of_stream": stream}) for stream in found])
    return {(each.source_stream_id, each.source_position) for own in found.values() for each in own}


def forget_slices_at(
    transaction: Transaction, stream_id: bytes, positions: Iterable[int]
) -> set[Source]:
    """Take the slices at some positions of a stream away; from which segments they were cut."""
    answers = transaction.batch(
        [(FORGET_SLICE, {"of_stream": stream_id, "at_position": each}) for each in positions]
    )
    return {(row[0], row[1]) for rows in answers for row in rows}


def release(transaction: Transaction, sources: Iterable[Source]) -> list[FreedSegment]:
    """Free those of ``sources`` that nobody needs any more; what is to be freed."""
    steps: list[Step] = []
    for stream_id, position in sorted(sources):
        where = {"of_stream": stream_id, "at_position": position, "now": transaction.now}
        steps += [(FREE_KEPT, where), (DROP_KEPT, where)]
    answers = transaction.batch(steps)
    return [FreedSegment(*row) for rows in answers for row in rows]


def require_room(transaction: Transaction, stream_id: bytes, sources: Iterable[bytes]) -> None:
    """``ResourceExhausted`` unless ``stream_id`` may be one more that borrows of ``sources``."""
    answers = transaction.batch(
        [
            (OTHER_HOLDERS, {"of_stream": stream_id, "ancestor": source})
            for source in sorted(set(sources))
        ]
    )
    if any(counted[0][0] >= verify.MAX_LIVE_COPIES for counted in answers):
        raise no_room()


def no_room() -> CalqueError:
    """What to raise for one borrower too many."""
    return ResourceExhausted(
        f"the original has {verify.MAX_LIVE_COPIES} copies, the limit is {verify.MAX_LIVE_COPIES}",
        hint="Delete a copy, or upload the object anew.",
    )


def rows_of(answers: Iterable[Any]) -> list[Slice]:
    """Rows of ``SLICES_OF``."""
    return [Slice(*row) for row in answers]
