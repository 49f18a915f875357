"""Taking a stream away: the one routine behind every delete and every overwrite.

A stream that goes is one of three things:

- a **copy**: its reference row goes with it, no piece does;
- an **original with copies**: the oldest copy inherits the pieces and becomes the
  ancestor of the others, no piece goes;
- the **last holder**: its pieces are queued in ``freed_segments`` and handed back, to be
  removed from the nodes once the transaction is committed.

The caller holds the locks of ``locks.py``.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import BigInteger, LargeBinary, bindparam, delete, insert, select, update

from calque.store.metabase.lookup import Found
from calque.store.metabase.object_keys import key_is, key_parameter
from calque.store.metabase.schema import freed_segments, objects, segment_copies, segments
from calque.store.metabase.statement import Statement, rewriting
from calque.store.metabase.transaction import Parameters, Transaction

_copies = segment_copies.c

OLDEST_COPY = Statement(
    "oldest copy of an ancestor",
    select(_copies.stream_id)
    .select_from(segment_copies.join(objects, objects.c.stream_id == _copies.stream_id))
    .where(_copies.ancestor_stream_id == bindparam("ancestor"))
    .order_by(objects.c.created_at, _copies.stream_id)
    .limit(1),
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
INHERIT = rewriting(
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
DELETE_SEGMENTS = Statement(
    "delete the segments of a stream",
    delete(segments).where(segments.c.stream_id == bindparam("stream_id")),
)
FREE_SEGMENTS = Statement(
    "queue the pieces of a last holder",
    insert(freed_segments)
    .from_select(
        ["root_piece_id", "alias_pieces", "freed_at"],
        select(
            segments.c.root_piece_id,
            segments.c.remote_alias_pieces,
            bindparam("now", type_=BigInteger),
        ).where(
            segments.c.stream_id == bindparam("stream_id"),
            segments.c.remote_alias_pieces.is_not(None),
        ),
    )
    .returning(freed_segments.c.root_piece_id, freed_segments.c.alias_pieces),
)
DELETE_OBJECT_ROW = Statement(
    "delete an object row",
    delete(objects).where(
        objects.c.project_id == bindparam("project_id"),
        objects.c.bucket_name == bindparam("bucket"),
        key_is(objects.c.object_key, key_parameter("key")),
        objects.c.version == bindparam("of_version"),
    ),
)


class FreedSegment(NamedTuple):
    """A physical segment that nobody holds any more, its pieces still packed."""

    root_piece_id: bytes
    alias_pieces: bytes


def remove(transaction: Transaction, going: Found) -> list[FreedSegment]:
    """Delete an object with its segments and references; returns what is to be freed."""
    stream_id = going.object.stream_id
    queued, *_ = transaction.batch(
        [
            *_letting_go(transaction, going),
            (DELETE_SEGMENTS, {"stream_id": stream_id}),
            (
                DELETE_OBJECT_ROW,
                {
                    "project_id": going.object.project_id,
                    "bucket": going.object.bucket_name,
                    "key": going.object.object_key,
                    "of_version": going.object.version,
                },
            ),
        ]
    )
    return [FreedSegment(*row) for row in queued]


def _letting_go(transaction: Transaction, going: Found) -> list[tuple[Statement, Parameters]]:
    """What the pieces need before their rows go; only the last holder's first statement answers."""
    stream_id = going.object.stream_id
    if going.ancestor is not None:
        return [(FORGET_COPY, {"stream_id": stream_id})]
    heir = oldest_copy(transaction, stream_id)
    if heir is None:
        return [(FREE_SEGMENTS, {"stream_id": stream_id, "now": transaction.now})]
    return [
        (INHERIT, {"heir": heir, "ancestor": stream_id}),
        (FORGET_COPY, {"stream_id": heir}),
        (REPOINT_COPIES, {"ancestor": stream_id, "heir": heir}),
    ]


def oldest_copy(transaction: Transaction, ancestor: bytes) -> bytes | None:
    """The copy that would inherit from ``ancestor``, or ``None`` when it has none."""
    found = transaction.row(OLDEST_COPY, {"ancestor": ancestor})
    return bytes(found[0]) if found else None
