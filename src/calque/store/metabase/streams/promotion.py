"""Taking a stream away: the one routine behind every delete and every overwrite.

A stream that goes is one of three things:

- a **copy**: its reference row goes with it, no piece does;
- an **original with copies**: the oldest copy inherits the pieces and becomes the
  ancestor of the others and the source of all slices, no piece goes;
- the **last holder**: its pieces are queued in ``freed_segments`` and handed back, to be
  removed from the nodes once the transaction is committed. Segments that slices are cut from
  stay behind without their object (``slices``).

What it borrowed by slices itself is released.

The caller holds the locks of ``engine/locks.py``.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import (
    ARRAY,
    BigInteger,
    LargeBinary,
    any_,
    bindparam,
    delete,
    insert,
    select,
    update,
)

from calque.store.metabase.engine.statement import POSTGRES, Statement, rewrite_statement
from calque.store.metabase.engine.transaction import Step, Transaction
from calque.store.metabase.model.object_keys import key_is, key_parameter
from calque.store.metabase.model.records import FreedSegment
from calque.store.metabase.model.schema import (
    freed_segments,
    objects,
    segment_copies,
    segments,
)
from calque.store.metabase.streams.lookup import FoundObject
from calque.store.metabase.streams.slices import (
    REPOINT_SLICES,
    forget_slices,
    has_no_slices,
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
COPIED_STREAMS = Statement(
    "those of many streams that have copies",
    postgres=select(_copies.ancestor_stream_id)
    .distinct()
    .where(_copies.ancestor_stream_id == any_(bindparam("streams", type_=ARRAY(LargeBinary)))),
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
DELETE_SEGMENTS = Statement(
    "delete the segments of a stream",
    delete(segments).where(segments.c.stream_id == bindparam("stream_id")),
)
DELETE_UNSLICED = Statement(
    "delete the segments of a stream that no slices are cut from",
    delete(segments).where(segments.c.stream_id == bindparam("stream_id"), has_no_slices),
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
            has_no_slices,
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


def remove(transaction: Transaction, going: FoundObject) -> list[FreedSegment]:
    """Delete an object with its segments and references; returns what is to be freed."""
    return remove_all(transaction, [going])


def remove_all(transaction: Transaction, going: Sequence[FoundObject]) -> list[FreedSegment]:
    """Delete many objects, in a few trips; returns what is to be freed.

    Copies go first. What an original leaves is then for a copy that stays, and as families are
    disjoint, none of the rest has to look at what another left.
    """
    released = forget_slices(transaction, [each.object.stream_id for each in going])
    # The other way round an original could be inherited by a copy that goes in the same batch.
    copies = [each for each in going if each.ancestor is not None]
    originals = [each for each in going if each.ancestor is None]
    transaction.batch(_in_runs([_steps_for_copy(each) for each in copies]))
    copied = [each.object.stream_id for each in originals if each.may_have_copies]
    heirs = _heirs(transaction, copied)
    answers = transaction.batch(
        _in_runs(
            [
                _steps_for_original(each, heirs.get(each.object.stream_id), transaction.now)
                for each in originals
            ]
        )
    )
    freed = [FreedSegment(*row) for rows in answers for row in rows]
    return freed + release(transaction, released)


def _in_runs(steps: Sequence[Sequence[Step]]) -> list[Step]:
    """The steps of many objects, equal ones side by side where all have the same.

    The order among objects does not matter; that of each one's own steps does.
    """
    if len({len(each) for each in steps}) == 1:
        return [step for run in zip(*steps, strict=True) for step in run]
    return [step for each in steps for step in each]


def _heirs(transaction: Transaction, streams: Sequence[bytes]) -> dict[bytes, bytes]:
    """The oldest copy of each of ``streams`` that has any."""
    if transaction.dialect == POSTGRES and len(streams) > 1:
        rows = transaction.rows(COPIED_STREAMS, {"streams": list(streams)})
        streams = [row[0] for row in rows]
    answers = transaction.batch([(OLDEST_COPY, {"ancestor": stream}) for stream in streams])
    return {stream: rows[0][0] for stream, rows in zip(streams, answers, strict=True) if rows}


def _steps_for_copy(going: FoundObject) -> list[Step]:
    return [(FORGET_COPY, {"stream_id": going.object.stream_id}), *_steps_for_rows(going)]


def _steps_for_original(going: FoundObject, heir: bytes | None, now: int) -> list[Step]:
    """Only the first step of a last holder answers, with what is to be freed."""
    stream_id = going.object.stream_id
    if heir is None:
        return [
            (FREE_SEGMENTS, {"stream_id": stream_id, "now": now}),
            *_steps_for_rows(going, DELETE_UNSLICED),
        ]
    # The heir takes the pieces before the original's rows go with theirs, and loses its own
    # reference before the others are pointed at it, or it would be pointed at itself.
    return [
        (INHERIT, {"heir": heir, "ancestor": stream_id}),
        (FORGET_COPY, {"stream_id": heir}),
        (REPOINT_COPIES, {"ancestor": stream_id, "heir": heir}),
        (REPOINT_SLICES, {"ancestor": stream_id, "heir": heir}),
        *_steps_for_rows(going),
    ]


def _steps_for_rows(going: FoundObject, delete_segments: Statement = DELETE_SEGMENTS) -> list[Step]:
    record = going.object
    return [
        (delete_segments, {"stream_id": record.stream_id}),
        (
            DELETE_OBJECT_ROW,
            {
                "project_id": record.project_id,
                "bucket": record.bucket_name,
                "key": record.object_key,
                "of_version": record.version,
            },
        ),
    ]
