"""The tables that files are loaded into, as the ledger names them."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import Connection, and_, delete, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from calque.ledger.database import Ledger
from calque.ledger.schema import OPEN, files, loads, tables


@dataclass(frozen=True, slots=True)
class TableKey:
    """Database, name and the table's own id, under the ledger's tenant."""

    database: str
    name: str
    table_id: str
    location: str | None = None


@dataclass(frozen=True, slots=True)
class TableRow:
    """A table the ledger knows."""

    number: int
    key: TableKey
    first_load_at: int | None
    checked_version: int

    @property
    def unchecked(self) -> bool:
        """Nobody has compared the ledger with the table yet, or not to the end."""
        return self.checked_version < 0


def find_table(ledger: Ledger, key: TableKey) -> TableRow | None:
    """The table's row, or None where the ledger has never seen it."""
    with ledger.read() as connection:
        return _find(ledger, connection, key)


def register_table(ledger: Ledger, key: TableKey) -> TableRow:
    """The table's row, made if need be. A re-made table has another id, hence a clean slate."""
    with ledger.write() as connection:
        found = _find(ledger, connection, key)
        if found:
            return found
        connection.execute(
            upsert(connection, tables)
            .values(
                tenant=ledger.tenant,
                database=key.database,
                name=key.name,
                table_id=key.table_id,
                location=key.location,
                checked_version=-1,
                truncated_version=-1,
            )
            .on_conflict_do_nothing()
        )
        made = _find(ledger, connection, key)
        assert made is not None, "the row is there, by this transaction or another"
        return made


def _find(ledger: Ledger, connection: Connection, key: TableKey) -> TableRow | None:
    same = and_(tables.c.database == key.database, tables.c.name == key.name)
    if key.location is not None:
        # One table under two names: an Iceberg table renamed, or in two configurations.
        same = or_(same, tables.c.location == key.location)
    row = connection.execute(
        select(tables.c.number, tables.c.first_load_at, tables.c.checked_version)
        .where(
            tables.c.tenant == ledger.tenant,
            tables.c.table_id == key.table_id,
            same,
        )
        .order_by(tables.c.number)
    ).first()
    return TableRow(row.number, key, row.first_load_at, row.checked_version) if row else None


def tables_with_open_loads(ledger: Ledger) -> list[TableRow]:
    """The tenant's tables for which some load is not over, whether or not its loader lives."""
    query = (
        select(
            tables.c.number,
            tables.c.database,
            tables.c.name,
            tables.c.table_id,
            tables.c.location,
            tables.c.first_load_at,
            tables.c.checked_version,
        )
        .where(
            tables.c.tenant == ledger.tenant,
            select(loads.c.load_id)
            .where(loads.c.table_number == tables.c.number, loads.c.state.in_(OPEN))
            .exists(),
        )
        .order_by(tables.c.number)
    )
    with ledger.read() as connection:
        return [
            TableRow(number, TableKey(*key), first, checked)
            for number, *key, first, checked in connection.execute(query)
        ]


def void_records(
    ledger: Ledger, table: TableRow, ranges: list[tuple[int, int]], checked_version: int
) -> int:
    """Drop the records of commits that a restore took back: versions in ``(low, high]``.

    The version is not noted as checked while a load is open: its records come after this look.
    """
    dropped = 0
    with ledger.write() as connection:
        open_loads = select(loads.c.load_id).where(
            loads.c.table_number == table.number, loads.c.state.in_(OPEN)
        )
        for low, high in ranges:
            dropped += connection.execute(
                delete(files).where(
                    files.c.table_number == table.number,
                    files.c.table_version > low,
                    files.c.table_version <= high,
                )
            ).rowcount
        connection.execute(
            update(tables)
            .where(
                tables.c.number == table.number,
                tables.c.checked_version < checked_version,
                ~open_loads.exists(),
            )
            .values(checked_version=checked_version)
        )
    return dropped


def upsert(connection: Connection, table: object) -> postgresql.Insert | sqlite.Insert:
    """An INSERT that knows ON CONFLICT, in the connection's dialect."""
    maker = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    return maker(table)  # type: ignore[arg-type]
