"""The tables that the ledger has seen loads of."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import and_, func, select

from calque.ledger.database import Ledger
from calque.ledger.identity import moment
from calque.ledger.schema import loads, tables


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """A table, and the sums of its committed loads."""

    address: tuple[str, str]
    """Catalog and address, as in its key."""
    location: str | None
    loads: int
    rows: int
    last_load_at: datetime | None
    number: int = 0
    is_made: bool = True
    """False where its first load failed: then there is no table."""

    @property
    def spelling(self) -> str:
        """The table as commands take it."""
        catalog, address = self.address
        if catalog == "delta":
            return (self.location or address).removeprefix("file://")
        return f"{catalog}/{address}" if catalog.startswith("iceberg:/") else address


def list_loaded_tables(ledger: Ledger) -> list[LoadedTable]:
    """The tenant's tables. Of one that was dropped and made again, the last counts."""
    committed = and_(loads.c.table_number == tables.c.number, loads.c.state == "COMMITTED")
    query = (
        select(
            tables.c.catalog,
            tables.c.address,
            tables.c.location,
            func.count(loads.c.load_id),
            func.coalesce(func.sum(loads.c.rows), 0),
            func.max(loads.c.finished_at),
            tables.c.number,
            tables.c.first_load_at,
        )
        .join(loads, committed, isouter=True)
        .where(tables.c.tenant == ledger.tenant)
        .group_by(tables.c.number)
        .order_by(tables.c.number)
    )
    found: dict[tuple[str, str], LoadedTable] = {}
    with ledger.read() as connection:
        for catalog, address, location, *sums, number, first in connection.execute(query):
            count, rows, last = sums
            earlier = found.get((catalog, address))
            is_made = first is not None or (earlier is not None and earlier.is_made)
            found[catalog, address] = LoadedTable(
                (catalog, address), location, count, int(rows), moment(last), number, is_made
            )
    return list(found.values())
