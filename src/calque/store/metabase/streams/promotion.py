"""Taking a stream away: the one routine behind every delete and every overwrite.

A stream that goes is one of three things:

- a **copy**: its reference row goes with it, no piece does;
- an **original with copies**: the oldest copy is promoted: it inherits the pieces and becomes the
  ancestor of the others and the source of all slices, no piece goes;
- the **last holder**: its pieces are queued in ``freed_segments`` and handed back, to be
  removed from the nodes once the transaction is committed. Segments that slices are cut from
  stay behind without their object (``slices``).

What it borrowed by slices itself is released.

The caller holds the locks of ``engine/locks.py``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import LargeBinary, bindparam, delete, select, update

from calque.store.metabase.engine.statement import Statement, rewrite_statement
from calque.store.metabase.engine.transaction import Step, Transaction
from calque.store.metabase.model.records import FreedSegment
from calque.store.metabase.model.schema import objects, segment_copies, segments
from calque.store.metabase.streams.given_streams import give_streams, statement_of_streams
from calque.store.metabase.streams.lookup import FoundObject
from calque.store.metabase.streams.slices import (
    REPOINT_SLICES,
    forget_slices,
    has_no_slices,
    queue_pieces,
    release,
)

_copies = segment_copies.c

OLDEST_COPY = Statement(
    "oldest copy of an ancestor",
    select(_copies.stream_id)
    .select_from(segment_copies.join(objects, objects.c.stream_id == _copies.stream_id))
    .where(_copies.ancestor_stream_id == bindparam("ancestor"))
    .order_by(objects.c.created_at, _copies.stream_id)
    .limit(1),
)
COPIED_STREAMS = statement_of_streams(
    "those of many streams that have copies",
    _copies.ancestor_stream_id,
    lambda given: select(_copies.ancestor_stream_id).distinct().where(given),
)
INHERITED = (
    "repaired_at",
    "expires_at",
    "root_piece_id",
    "encrypted_size",
    "plain_size",
    "redundancy",
    "remote_alias_pieces",
    "placement",
)
INHERIT = rewrite_statement(
    "inherit the pieces of an ancestor",
    segments,
    {name: segments.c[name] for name in INHERITED},
    segments.c.stream_id == bindparam("ancestor"),
    under={"stream_id": bindparam("heir", type_=LargeBinary)},
)
FORGET_COPY = Statement(
    "forget a reference",
    delete(segment_copies).where(_copies.stream_id == bindparam("stream_id")),
)
REPOINT_COPIES = Statement(
    "re-point references",
    update(segment_copies)
    .where(_copies.ancestor_stream_id == bindparam("ancestor"))
    .values(ancestor_stream_id=bindparam("heir")),
)
FORGET_COPIES = statement_of_streams(
    "forget the references of many streams",
    _copies.stream_id,
    lambda given: delete(segment_copies).where(given),
)
DELETE_SEGMENTS = statement_of_streams(
    "delete the segments of many streams",
    segments.c.stream_id,
    lambda given: delete(segments).where(given),
)
DELETE_UNSLICED = statement_of_streams(
    "delete the segments of many streams that no slices are cut from",
    segments.c.stream_id,
    lambda given: delete(segments).where(given, has_no_slices),
)
FREE_SEGMENTS = statement_of_streams(
    "queue the pieces of last holders",
    segments.c.stream_id,
    lambda given: queue_pieces(given, has_no_slices),
)
DELETE_OBJECTS = statement_of_streams(
    "delete the objects of many streams",
    objects.c.stream_id,
    lambda given: delete(objects).where(given),
)


def remove(transaction: Transaction, going: FoundObject) -> list[FreedSegment]:
    """Delete an object with its segments and references; returns what is to be freed."""
    return remove_all(transaction, [going])


def remove_all(transaction: Transaction, going: Sequence[FoundObject]) -> list[FreedSegment]:
    """Delete many objects, in a few trips; returns what is to be freed.

    Copies go first. What an original leaves is then for a copy that stays, and as families are
    disjoint, none of the rest has to look at what another left.
    """
    released = forget_slices(transaction, _streams_of(going))
    # The other way round an original could be inherited by a copy that goes in the same batch.
    copies = _streams_of(each for each in going if each.ancestor is not None)
    originals = _streams_of(each for each in going if each.ancestor is None)
    if copies:
        of_copies = give_streams(transaction, copies)
        transaction.batch(
            [(each, of_copies) for each in (FORGET_COPIES, DELETE_SEGMENTS, DELETE_OBJECTS)]
        )
    heirs = _find_oldest_copies(transaction, originals)
    bequests = [step for pair in heirs.items() for step in _steps_to_promote(*pair)]
    rows = transaction.batch(
        [
            *bequests,
            *_steps_for_last(transaction, [each for each in originals if each not in heirs]),
            *_steps_for_bequeathed(transaction, list(heirs)),
        ]
    )
    freed = [FreedSegment(*row) for answer in rows for row in answer]
    return freed + release(transaction, released)


def _streams_of(found: Iterable[FoundObject]) -> list[bytes]:
    return [each.object.stream_id for each in found]


def _find_oldest_copies(transaction: Transaction, streams: Sequence[bytes]) -> dict[bytes, bytes]:
    """The oldest copy of each of ``streams`` that has any."""
    if len(streams) > 1:
        rows = transaction.rows(COPIED_STREAMS, give_streams(transaction, streams))
        streams = [row[0] for row in rows]
    answers = transaction.batch([(OLDEST_COPY, {"ancestor": stream}) for stream in streams])
    return {stream: rows[0][0] for stream, rows in zip(streams, answers, strict=True) if rows}


def _steps_to_promote(ancestor: bytes, heir: bytes) -> list[Step]:
    # The heir takes the pieces before the original's rows go with theirs, and loses its own
    # reference before the others are pointed at it, or it would be pointed at itself.
    both = {"ancestor": ancestor, "heir": heir}
    return [
        (INHERIT, both),
        (FORGET_COPY, {"stream_id": heir}),
        (REPOINT_COPIES, both),
        (REPOINT_SLICES, both),
    ]


def _steps_for_last(transaction: Transaction, streams: Sequence[bytes]) -> list[Step]:
    """The first of these steps is the only one that answers, with what is to be freed."""
    if not streams:
        return []
    given = give_streams(transaction, streams)
    return [
        (FREE_SEGMENTS, {**given, "now": transaction.now}),
        (DELETE_UNSLICED, given),
        (DELETE_OBJECTS, given),
    ]


def _steps_for_bequeathed(transaction: Transaction, streams: Sequence[bytes]) -> list[Step]:
    if not streams:
        return []
    given = give_streams(transaction, streams)
    return [(DELETE_SEGMENTS, given), (DELETE_OBJECTS, given)]
