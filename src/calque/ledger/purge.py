"""The queue of source files to be removed after their load; it outlives a crash."""

from __future__ import annotations

import json
from dataclasses import dataclass

from sqlalchemy import delete, select, update

from calque.ledger.database import Ledger
from calque.ledger.schema import loads, purges
from calque.ledger.tables import TableRow
from calque.values import SourceIdentity


@dataclass(frozen=True, slots=True)
class Purge:
    """A source to be removed, if it is still the one that was loaded."""

    load_id: str
    identity: SourceIdentity
    tries: int


def pending_purges(ledger: Ledger, table: TableRow, limit: int) -> list[Purge]:
    """What is left to be removed of a table's finished loads."""
    query = (
        select(purges.c.load_id, purges.c.identity, purges.c.tries)
        .join(loads, loads.c.load_id == purges.c.load_id)
        .where(loads.c.table_number == table.number)
        .order_by(purges.c.tries, purges.c.location)
        .limit(limit)
    )
    with ledger.read() as connection:
        return [
            Purge(row.load_id, SourceIdentity.from_json(json.loads(row.identity)), row.tries)
            for row in connection.execute(query)
        ]


def purged(ledger: Ledger, done: list[Purge]) -> None:
    """Take removed files off the queue."""
    with ledger.write() as connection:
        for one in done:
            connection.execute(
                delete(purges).where(
                    purges.c.load_id == one.load_id, purges.c.location == one.identity.location
                )
            )


def purge_failed(ledger: Ledger, one: Purge, message: str) -> None:
    """Keep a file in the queue, with the reason."""
    with ledger.write() as connection:
        connection.execute(
            update(purges)
            .where(purges.c.load_id == one.load_id, purges.c.location == one.identity.location)
            .values(tries=purges.c.tries + 1, message=message)
        )
