"""The copies of an object: who owns the pieces, who shares them, what a deletion would free."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import bindparam, func, or_, select

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
OWN_BYTES = Statement(
    "bytes that a stream holds itself and lends to no slice",
    select(
        func.coalesce(func.sum(segments.c.encrypted_size), 0),
        func.count(segments.c.remote_alias_pieces),
    ).where(
        segments.c.stream_id == bindparam("stream_id"),
        or_(segments.c.remote_alias_pieces.is_not(None), segments.c.inline_data.is_not(None)),
        has_no_slices,
    ),
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
        size, pieces = transaction.rows(OWN_BYTES, {"stream_id": stream_id})[0]
        inherited = found.ancestor is None and count and pieces
        return Family(original, copies, int(count), 0 if inherited else int(size))

    return database.read(work)
