"""How much a sweep would remove: by the same indexes, and nothing is changed."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import bindparam, func, literal_column, select

from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model.schema import objects, operations
from calque.store.metabase.objects.delete_batch import NEWER_SEGMENT

COUNT_EXPIRED = Statement(
    "count expired objects",
    select(func.count())
    .select_from(objects)
    .where(objects.c.expires_at.is_not(None), objects.c.expires_at <= bindparam("before")),
)
COUNT_ZOMBIES = Statement(
    "count abandoned uploads",
    select(func.count())
    .select_from(objects)
    .where(
        objects.c.zombie_deletion_deadline.is_not(None),
        objects.c.zombie_deletion_deadline <= bindparam("before"),
        objects.c.status == literal_column("1"),
        ~NEWER_SEGMENT,
    ),
)
COUNT_OPERATIONS = Statement(
    "count abandoned operations",
    select(func.count())
    .select_from(operations)
    .where(operations.c.expires_at <= bindparam("before")),
)


class WhatIsOver(NamedTuple):
    """Rows that a sweep would remove."""

    expired_objects: int
    abandoned_uploads: int
    abandoned_operations: int


def count_removable(database: Database, *, idle_us: int) -> WhatIsOver:
    """Count, in one snapshot."""

    def work(transaction: Transaction) -> WhatIsOver:
        before = {"before": transaction.now}
        idle = {**before, "idle_since": transaction.now - idle_us}
        return WhatIsOver(
            int(transaction.rows(COUNT_EXPIRED, before)[0][0]),
            int(transaction.rows(COUNT_ZOMBIES, idle)[0][0]),
            int(transaction.rows(COUNT_OPERATIONS, before)[0][0]),
        )

    return database.read(work)
