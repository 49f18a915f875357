"""The copies of an object: who owns the pieces, who shares them, what a deletion would free."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import bindparam, case, func, select

from calque.errors import NotFound
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model.records import ObjectRecord
from calque.store.metabase.model.schema import objects, segment_copies, segments
from calque.store.metabase.streams.lookup import OBJECT_BY_STREAM, object_in, record_by_stream
from calque.store.metabase.streams.slices import has_no_slices

_copies = segment_copies.c

OLDEST_COPIES = Statement(
    "oldest copies of an ancestor, as objects",
    select(objects)
    .select_from(segment_copies.join(objects, objects.c.stream_id == _copies.stream_id))
    .where(_copies.ancestor_stream_id == bindparam("ancestor"))
    .order_by(objects.c.created_at, _copies.stream_id)
    .limit(bindparam("page")),
)
COUNT_COPIES = Statement(
    "count the copies of an ancestor",
    select(func.count())
    .select_from(segment_copies)
    .where(_copies.ancestor_stream_id == bindparam("ancestor")),
)
_size = segments.c.encrypted_size
OWN_BYTES = Statement(
    "bytes that a stream holds itself: in pieces that it lends to no slice, and inline",
    select(
        func.coalesce(func.sum(case((segments.c.remote_alias_pieces.is_not(None), _size))), 0),
        func.coalesce(func.sum(case((segments.c.inline_data.is_not(None), _size))), 0),
    ).where(segments.c.stream_id == bindparam("stream_id"), has_no_slices),
)


class Family(NamedTuple):
    """An original and its copies, oldest first: the first inherits when the original goes."""

    original: ObjectRecord
    copies: list[ObjectRecord]
    copy_count: int
    freed_bytes: int
    """What the deletion of the object that was asked about would free, before redundancy."""


def read_family(database: Database, stream_id: bytes, *, limit: int) -> Family:
    """The family of an object by the id of its contents, in one picture; at most so many copies.

    NotFound when no object has these contents any more.
    """

    def work(transaction: Transaction) -> Family:
        found = object_in(transaction.rows(OBJECT_BY_STREAM, {"stream_id": stream_id}))
        if found is None:
            raise NotFound("the object was replaced or deleted meanwhile")
        root = found.ancestor or stream_id
        original = found.object if found.ancestor is None else record_by_stream(transaction, root)
        assert original is not None, "an original is there as long as it has copies"
        page = {"ancestor": root, "page": limit}
        copies = [ObjectRecord(*row) for row in transaction.rows(OLDEST_COPIES, page)]
        (count,) = transaction.rows(COUNT_COPIES, {"ancestor": root})[0]
        pieces, inline = map(int, transaction.rows(OWN_BYTES, {"stream_id": stream_id})[0])
        # Pieces of an original with copies are inherited; inline bytes each object has itself.
        is_inherited = found.ancestor is None and count > 0
        return Family(original, copies, int(count), inline + (0 if is_inherited else pieces))

    return database.read(work)
