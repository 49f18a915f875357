"""What was stored, hour by hour: of each bucket, each node, and the whole store."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from sqlalchemy import bindparam, delete, func, insert, select

from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model.schema import usage_history

Scope = Literal["bucket", "node", "store"]
HOUR_US = 3600 * 1_000_000
KEPT_US = 400 * 24 * HOUR_US
"""History is kept for a year and a month."""

_history = usage_history.c

FORGET_HOUR = Statement(
    "forget the usage of an hour",
    delete(usage_history).where(_history.recorded_at == bindparam("of_hour")),
)
FORGET_OLD_USAGE = Statement(
    "forget old usage", delete(usage_history).where(_history.recorded_at < bindparam("before"))
)
RECORD_USAGE = Statement("record usage", insert(usage_history))
LAST_HOUR = Statement(
    "last hour of usage",
    select(func.max(_history.recorded_at)).where(_history.recorded_at <= bindparam("upto")),
)
USAGE_BETWEEN = Statement(
    "usage between two hours",
    select(usage_history)
    .where(
        _history.recorded_at >= bindparam("since"),
        _history.recorded_at <= bindparam("upto"),
        _history.scope == bindparam("of_scope"),
    )
    .order_by(_history.recorded_at, _history.project_id, _history.name),
)


class UsageRow(NamedTuple):
    """A row of ``usage_history``: a bucket (by project and name), a node (its id in hex) or all.

    ``logical_bytes`` counts copies in full, ``physical_bytes`` what is really kept (of a node: on
    its disk), ``saved_bytes`` what copies share.
    """

    recorded_at: int
    scope: Scope
    project_id: bytes = b""
    name: str = ""
    objects: int = 0
    segments: int = 0
    pieces: int = 0
    logical_bytes: int = 0
    physical_bytes: int = 0
    saved_bytes: int = 0


def hour_of(at_us: int) -> int:
    """The beginning of the hour."""
    return at_us - at_us % HOUR_US


def record_usage(database: Database, rows: Iterable[UsageRow]) -> None:
    """Keep the usage of an hour, in place of what was recorded of it before."""
    ordered = sorted(rows)

    def work(transaction: Transaction) -> None:
        for hour in sorted({each.recorded_at for each in ordered}):
            transaction.run(FORGET_HOUR, {"of_hour": hour})
        transaction.run(FORGET_OLD_USAGE, {"before": transaction.now - KEPT_US})
        transaction.run_batch([(RECORD_USAGE, each._asdict()) for each in ordered])

    database.write(work)


def read_usage(database: Database, scope: Scope, since: int, upto: int) -> list[UsageRow]:
    """The history of one scope, oldest first."""
    asked = {"since": since, "upto": upto, "of_scope": scope}
    return [UsageRow(*row) for row in database.read_rows(USAGE_BETWEEN, asked)]


def last_hour(database: Database) -> int | None:
    """The last hour that was recorded."""
    (row,) = database.read_rows(LAST_HOUR, {"upto": database.clock()})
    return None if row[0] is None else int(row[0])
