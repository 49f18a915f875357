"""Taking a stream away: the one routine behind every delete and every overwrite.

A stream that goes is one of three things:

- a **copy**: its reference row goes with it, no piece does;
- an **original with copies**: the oldest copy inherits the pieces and becomes the
  ancestor of the others, no piece goes;
- the **last holder**: its pieces are handed back, to be removed from the nodes.

The caller holds the locks of ``locks.py``.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import bindparam, delete, select, update

from calque.store.metabase.lookup import Found
from calque.store.metabase.schema import objects, segment_copies, segments
from calque.store.metabase.statement import Statement
from calque.store.metabase.transaction import Transaction

_copies = segment_copies.c
_original = segments.alias("original")

OLDEST_COPY = Statement(
    "oldest copy of an ancestor",
    select(_copies.stream_id)
    .select_from(segment_copies.join(objects, objects.c.stream_id == _copies.stream_id))
    .where(_copies.ancestor_stream_id == bindparam("ancestor"))
    .order_by(objects.c.created_at, _copies.stream_id)
    .limit(1),
)
INHERIT = Statement(
    "inherit the pieces of an ancestor",
    update(segments)
    .where(
        segments.c.stream_id == bindparam("heir"),
        _original.c.stream_id == bindparam("ancestor"),
        _original.c.position == segments.c.position,
    )
    .values(
        repaired_at=_original.c.repaired_at,
        expires_at=_original.c.expires_at,
        root_piece_id=_original.c.root_piece_id,
        encrypted_size=_original.c.encrypted_size,
        plain_size=_original.c.plain_size,
        redundancy=_original.c.redundancy,
        remote_alias_pieces=_original.c.remote_alias_pieces,
        placement=_original.c.placement,
    ),
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
TAKE_SEGMENTS = Statement(
    "delete the segments of a last holder",
    delete(segments)
    .where(segments.c.stream_id == bindparam("stream_id"))
    .returning(segments.c.root_piece_id, segments.c.remote_alias_pieces),
)
DELETE_OBJECT_ROW = Statement(
    "delete an object row",
    delete(objects).where(
        objects.c.project_id == bindparam("project_id"),
        objects.c.bucket_name == bindparam("bucket"),
        objects.c.object_key == bindparam("key"),
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
    freed: list[FreedSegment] = []
    if going.ancestor is not None:
        transaction.run(FORGET_COPY, {"stream_id": stream_id})
        transaction.run(DELETE_SEGMENTS, {"stream_id": stream_id})
    elif (heir := oldest_copy(transaction, stream_id)) is not None:
        _promote(transaction, stream_id, heir)
        transaction.run(DELETE_SEGMENTS, {"stream_id": stream_id})
    else:
        taken = transaction.rows(TAKE_SEGMENTS, {"stream_id": stream_id})
        freed = [FreedSegment(root, pieces) for root, pieces in taken if pieces is not None]
    transaction.run(
        DELETE_OBJECT_ROW,
        {
            "project_id": going.object.project_id,
            "bucket": going.object.bucket_name,
            "key": going.object.object_key,
            "of_version": going.object.version,
        },
    )
    return freed


def oldest_copy(transaction: Transaction, ancestor: bytes) -> bytes | None:
    """The copy that would inherit from ``ancestor``, or ``None`` when it has none."""
    found = transaction.row(OLDEST_COPY, {"ancestor": ancestor})
    return bytes(found[0]) if found else None


def _promote(transaction: Transaction, ancestor: bytes, heir: bytes) -> None:
    transaction.run(INHERIT, {"heir": heir, "ancestor": ancestor})
    transaction.run(FORGET_COPY, {"stream_id": heir})
    transaction.run(REPOINT_COPIES, {"ancestor": ancestor, "heir": heir})
