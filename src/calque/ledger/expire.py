"""Expiry: drop records whose life is over, and the traces of loads older than that."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import delete, select

from calque.ledger.database import Ledger
from calque.ledger.schema import OPEN, errors, files, loads, purges, results


@dataclass(frozen=True, slots=True)
class Expired:
    """How much was dropped."""

    files: int
    loads: int


def expire(ledger: Ledger) -> Expired:
    """Drop expired records, and loads that ended a whole life ago with no record left."""
    now = ledger.now()
    with ledger.write() as connection:
        dropped = connection.execute(delete(files).where(files.c.expires_at <= now)).rowcount
        old = (
            select(loads.c.load_id)
            .where(loads.c.state.not_in(OPEN), loads.c.finished_at <= now - ledger.life)
            .where(~select(files.c.load_id).where(files.c.load_id == loads.c.load_id).exists())
            .where(~select(purges.c.load_id).where(purges.c.load_id == loads.c.load_id).exists())
        )
        names = list(connection.execute(old).scalars())
        for name in names:
            connection.execute(delete(errors).where(errors.c.load_id == name))
            connection.execute(delete(results).where(results.c.load_id == name))
            connection.execute(delete(loads).where(loads.c.load_id == name))
    return Expired(dropped, len(names))
