"""The queue of pieces to delete on nodes: read, and shortened as they go.

A row is written by the transaction that removes the last stream using the pieces (see
``promotion`` and ``commit_segment``), so a crash at any moment leaves either the stream or the
row. Rows are taken away only when the nodes have answered. A root piece id is never used
again, so deleting twice, or by two processes at once, does no harm.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlalchemy import bindparam, delete, select, update

from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model.records import FreedSegment
from calque.store.metabase.model.schema import freed_segments

PAGE = 1000
"""Large, since a silent node is asked once for each page."""

_queue = freed_segments.c

SOME_FREED = Statement(
    "some freed segments",
    select(_queue.root_piece_id, _queue.alias_pieces)
    .where(_queue.root_piece_id > bindparam("after"))
    .order_by(_queue.root_piece_id)
    .limit(bindparam("page")),
)
FORGET_FREED = Statement(
    "forget a freed segment",
    delete(freed_segments).where(_queue.root_piece_id == bindparam("of_root")),
)
SHORTEN_FREED = Statement(
    "shorten a freed segment",
    update(freed_segments)
    .where(_queue.root_piece_id == bindparam("of_root"))
    .values(alias_pieces=bindparam("pieces_left")),
)


def list_freed(database: Database, *, page: int = PAGE) -> Iterator[list[FreedSegment]]:
    """The whole queue in pages, each row once: what stays is passed over, not met again."""
    after = b""
    while True:
        rows = database.read_rows(SOME_FREED, {"after": after, "page": page})
        if rows:
            yield [FreedSegment(*row) for row in rows]
        if len(rows) < page:
            return
        after = rows[-1][0]


def settle_freed(
    database: Database, freed: Sequence[FreedSegment], left: Sequence[FreedSegment]
) -> None:
    """Take ``freed`` off the queue, but for the pieces ``left``, whose nodes did not answer."""
    waiting = {each.root_piece_id: each.alias_pieces for each in left}
    work = [
        (SHORTEN_FREED, {"of_root": each.root_piece_id, "pieces_left": waiting[each.root_piece_id]})
        if each.root_piece_id in waiting
        else (FORGET_FREED, {"of_root": each.root_piece_id})
        for each in sorted(freed)  # two processes that settle the same rows lock them in one order
        if waiting.get(each.root_piece_id) != each.alias_pieces
    ]

    def settle(transaction: Transaction) -> None:
        transaction.run_batch(work)

    if work:
        database.write(settle, makes_room=True)
