"""Expiry: drop records whose life is over, and the traces of loads older than that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import delete, select

from calque.ledger.database import Ledger
from calque.ledger.files import GET
from calque.ledger.schema import OPEN, errors, files, loads, purges, results, tables
from calque.ledger.tables import TableKey


@dataclass(frozen=True, slots=True)
class Expired:
    """How much was dropped."""

    files: int
    loads: int


@dataclass(frozen=True, slots=True)
class OldLoad:
    """A load that ended a whole life ago and has no record left, and its table."""

    load_id: str
    key: TableKey


def expire(ledger: Ledger, release: Callable[[OldLoad], bool] = lambda load: True) -> Expired:
    """Drop expired records, and loads that ended a whole life ago with no record left.

    ``release`` lets go of what a load left elsewhere. It comes first, so that nothing is left that
    no ledger knows of; a load for which it says False stays until the next time.
    """
    with ledger.write() as connection:
        expired = files.c.expires_at <= ledger.now()
        dropped = connection.execute(delete(files).where(expired)).rowcount
    old = [load.load_id for load in _old_loads(ledger) if release(load)]
    for start in range(0, len(old), GET):
        _drop(ledger, old[start : start + GET])
    return Expired(dropped, len(old))


def _old_loads(ledger: Ledger) -> list[OldLoad]:
    query = (
        select(
            loads.c.load_id,
            tables.c.database,
            tables.c.name,
            tables.c.table_id,
            tables.c.location,
        )
        .join(tables, tables.c.number == loads.c.table_number)
        .where(loads.c.state.not_in(OPEN), loads.c.finished_at <= ledger.now() - ledger.life)
        .where(~select(files.c.load_id).where(files.c.load_id == loads.c.load_id).exists())
        .where(~select(purges.c.load_id).where(purges.c.load_id == loads.c.load_id).exists())
    )
    with ledger.read() as connection:
        return [OldLoad(load_id, TableKey(*key)) for load_id, *key in connection.execute(query)]


def _drop(ledger: Ledger, names: Sequence[str]) -> None:
    with ledger.write() as connection:
        for table in (errors, results, loads):
            connection.execute(delete(table).where(table.c.load_id.in_(names)))
