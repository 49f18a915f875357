"""Segments that are to be repaired, those with the fewest healthy pieces first.

A row names the segment that held the pieces when it was written. It is a hint and no more: the
worker reads the segment again, and what was deleted, moved or healed meanwhile is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from sqlalchemy import bindparam, delete, func, select, update

from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model.schema import repair_queue
from calque.store.metabase.upkeep.upsert import upsert_statement

_AT_ONCE = 500
_queue = repair_queue.c

QUEUE_REPAIR = upsert_statement("queue a repair", repair_queue)
KNOWN_BAD = Statement(
    "what is known of a segment in the queue of repairs",
    select(_queue.root_piece_id, _queue.bad_pieces)
    .where(_queue.stream_id == bindparam("of_stream"), _queue.position == bindparam("at_position"))
    .with_for_update(),
)
PUT_OFF = Statement(
    "put a repair off",
    update(repair_queue)
    .where(
        _queue.stream_id == bindparam("of_stream"),
        _queue.position == bindparam("at_position"),
        _queue.queued_at == bindparam("of_time"),
    )
    .values(not_before=bindparam("later")),
)
WORST_FIRST = Statement(
    "the worst of the queue of repairs",
    select(repair_queue)
    .where(
        _queue.healthy > bindparam("after_healthy"),
        _queue.healthy <= bindparam("upto_healthy"),
        _queue.not_before <= bindparam("before"),
    )
    .order_by(_queue.healthy, _queue.queued_at)
    .limit(bindparam("page")),
)
FORGET_REPAIR = Statement(
    "forget a repair",
    delete(repair_queue).where(
        _queue.stream_id == bindparam("of_stream"),
        _queue.position == bindparam("at_position"),
        _queue.queued_at == bindparam("of_time"),
    ),
)
COUNT_REPAIRS = Statement(
    "count the queue of repairs",
    select(func.count()).select_from(repair_queue).where(_queue.healthy >= bindparam("least")),
)
MOST = 256
"""More pieces than any segment has."""


class InjuredSegment(NamedTuple):
    """A row of ``repair_queue``. ``bad_pieces``: numbers of pieces that an audit found wrong."""

    stream_id: bytes
    position: int
    root_piece_id: bytes
    healthy: int
    bad_pieces: bytes = b""
    queued_at: int = 0
    not_before: int = 0


def queue_repairs(database: Database, injured: Iterable[InjuredSegment]) -> int:
    """Put segments into the queue, each once; how many. What is known of bad pieces is added to.

    A scan sees which nodes there are and not what is on them: what an audit has found must not be
    forgotten over it.
    """
    waiting, done = list(injured), 0
    while waiting:
        some, waiting = waiting[:_AT_ONCE], waiting[_AT_ONCE:]

        def work(transaction: Transaction, some: list[InjuredSegment] = some) -> int:
            # In one order, so that two processes cannot wait for each other.
            found = sorted(some)
            known = transaction.batch([(KNOWN_BAD, _place(each)) for each in found])
            rows = [
                each._replace(
                    queued_at=transaction.now, bad_pieces=_join_bad(each, there)
                )._asdict()
                for each, there in zip(found, known, strict=True)
            ]
            return len(transaction.run_batch([(QUEUE_REPAIR, row) for row in rows]))

        done += database.write(work)
        database.let_others_write()
    return done


def worst_repairs(database: Database, page: int) -> list[InjuredSegment]:
    """Some of the queue that may be tried now, the worst first."""
    asked = {
        "after_healthy": -1, "upto_healthy": MOST, "before": database.clock(), "page": page,
    }  # fmt: skip
    return [InjuredSegment(*row) for row in database.read_rows(WORST_FIRST, asked)]


def forget_repair(database: Database, done: InjuredSegment) -> None:
    """Take a row off the queue, unless it was queued anew since it was read."""
    where = {**_place(done), "of_time": done.queued_at}
    database.write(lambda transaction: transaction.run(FORGET_REPAIR, where))


def put_off_repair(database: Database, failed: InjuredSegment, microseconds: int) -> None:
    """Leave a row in the queue, but not to be tried before that time.

    One that was queued anew since it was read is left as it is: there is news of it.
    """
    where = {**_place(failed), "of_time": failed.queued_at}
    later = {**where, "later": database.clock() + microseconds}
    database.write(lambda transaction: transaction.run(PUT_OFF, later))


def count_repairs(database: Database) -> int:
    """How many segments wait."""
    return int(database.read_rows(COUNT_REPAIRS, {"least": 0})[0][0])


def _place(injured: InjuredSegment) -> dict[str, object]:
    return {"of_stream": injured.stream_id, "at_position": injured.position}


def _join_bad(found: InjuredSegment, known: list[Any]) -> bytes:
    """The bad pieces of a segment by the newest finding and those before it."""
    before = [bad for root, bad in known if root == found.root_piece_id]
    return bytes(sorted({*found.bad_pieces, *b"".join(before)}))
