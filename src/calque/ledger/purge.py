"""The queue of source files to be removed or moved after their load; it outlives a crash."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import bindparam, delete, select, tuple_, update

from calque.ledger.database import Ledger
from calque.ledger.schema import files, loads, purges
from calque.ledger.tables import TableRow
from calque.values import SourceIdentity

FILES_AT_ONCE = 500
"""Files that are removed between two notes of it."""


@dataclass(frozen=True, slots=True)
class Purge:
    """A source to be removed, if it is still the one that was loaded; or moved to an archive."""

    load_id: str
    identity: SourceIdentity
    tries: int
    archive: str | None = None
    name: str | None = None
    """Below the archive, as it was below the stage."""
    is_superseded: bool = False
    """Another load has brought the file since, with other bytes perhaps: if these lie there again,
    nobody has loaded them after those."""


def pending_purges(ledger: Ledger, table: TableRow) -> Iterator[list[Purge]]:
    """What is left to be removed of a table's finished loads, some at a time, each once."""
    record = files.alias()
    superseded = select(record.c.load_id).where(
        record.c.table_number == table.number,
        record.c.location == purges.c.location,
        record.c.load_id != purges.c.load_id,
    )
    query = (
        select(
            purges.c.load_id,
            purges.c.identity,
            purges.c.tries,
            purges.c.archive,
            purges.c.name,
            superseded.exists().label("superseded"),
        )
        .join(loads, loads.c.load_id == purges.c.load_id)
        .where(loads.c.table_number == table.number)
        .order_by(purges.c.load_id, purges.c.location)
        .limit(FILES_AT_ONCE)
    )
    key = tuple_(purges.c.load_id, purges.c.location)
    last = ("", "")
    while True:
        with ledger.read() as connection:
            found = [
                Purge(
                    row.load_id,
                    SourceIdentity.from_json(json.loads(row.identity)),
                    row.tries,
                    row.archive,
                    row.name,
                    bool(row.superseded),
                )
                for row in connection.execute(query.where(key > last))
            ]
        if not found:
            return
        yield found
        last = (found[-1].load_id, found[-1].identity.location)


def remove_from_queue(ledger: Ledger, done: Sequence[Purge]) -> None:
    """Take removed files off the queue."""
    if done:
        with ledger.write() as connection:
            connection.execute(delete(purges).where(_ONE), [_key(one) for one in done])


def note_failures(ledger: Ledger, failed: Sequence[tuple[Purge, str]]) -> None:
    """Keep files in the queue, each with the reason."""
    if failed:
        with ledger.write() as connection:
            connection.execute(
                update(purges)
                .where(_ONE)
                .values(tries=purges.c.tries + 1, message=bindparam("reason")),
                [{**_key(one), "reason": reason} for one, reason in failed],
            )


_ONE = (purges.c.load_id == bindparam("of_load")) & (purges.c.location == bindparam("at_place"))


def _key(one: Purge) -> dict[str, str]:
    return {"of_load": one.load_id, "at_place": one.identity.location}
