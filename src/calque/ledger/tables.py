"""The tables that files are loaded into, as the ledger names them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import Column, ColumnElement, Connection, and_, delete, false, or_, select, update

from calque.ledger.database import Ledger
from calque.ledger.schema import OPEN, files, loads, tables

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql, sqlite

RESTORED = -2
"""In place of a checked version: a restore was seen, and what it brought back is not recorded."""


@dataclass(frozen=True, slots=True)
class TableKey:
    """A table under the ledger's tenant: where it is found, its own id, and the user's words."""

    catalog: str
    """Who finds the table: ``delta`` for its location alone, or ``iceberg:`` and the catalog."""
    address: str
    """Where the catalog finds it: the location, or the identifier."""
    table_id: str
    location: str | None = None
    database: str = "default"
    """The user's: ``warehouse`` of ``warehouse.sales``, the namespace in a catalog, the folder of a
    table that has no other name. It says what is meant; the table is found by what is above."""
    name: str = ""


KEY_COLUMNS = tuple(tables.c[field.name] for field in dataclasses.fields(TableKey))


@dataclass(frozen=True, slots=True)
class TableRow:
    """A table the ledger knows."""

    number: int
    key: TableKey
    first_load_at: int | None
    checked_version: int
    forgotten_until: int | None = None
    """The youngest time stamp of a file whose record has expired and was dropped."""

    @property
    def is_unchecked(self) -> bool:
        """Nobody has compared the ledger with the table yet, or not to the end."""
        return self.checked_version < 0

    @property
    def was_restored(self) -> bool:
        """Unchecked since a restore: loads that the ledger knows may be in the table again."""
        return self.checked_version == RESTORED


def find_table(ledger: Ledger, key: TableKey) -> TableRow | None:
    """The table's row, or None where the ledger has never seen it."""
    with ledger.read() as connection:
        return _find(ledger, connection, key)


def register_table(ledger: Ledger, key: TableKey) -> TableRow:
    """The table's row, made if need be. A table that was made again has another id, and so a row
    of its own without records."""
    with ledger.write() as connection:
        found = _find(ledger, connection, key)
        if found:
            _keep_words(connection, found)
            return found
        connection.execute(
            upsert(connection, tables)
            .values(
                tenant=ledger.tenant,
                catalog=key.catalog,
                address=key.address,
                table_id=key.table_id,
                location=key.location,
                database=key.database,
                name=key.name,
                checked_version=-1,
                truncated_version=-1,
            )
            .on_conflict_do_nothing()  # another loader may register it at this moment
        )
        made = _find(ledger, connection, key)
        assert made is not None, "the row is there, by this transaction or another"
        return made


def find_words(ledger: Ledger, key: TableKey) -> tuple[str, str]:
    """Database and name of a table as its last load had them; those of the key before the first."""
    with ledger.read() as connection:
        found = _find(ledger, connection, key)
        if found is None:
            return key.database, key.name
        query = select(tables.c.database, tables.c.name).where(tables.c.number == found.number)
        database, name = connection.execute(query).one()
    return database, name


def _keep_words(connection: Connection, table: TableRow) -> None:
    """Whoever loads it last says what it is called: by a path once, by a name since."""
    words = {"database": table.key.database, "name": table.key.name}
    other = or_(tables.c.database != words["database"], tables.c.name != words["name"])
    connection.execute(update(tables).where(tables.c.number == table.number, other).values(words))


def _find(ledger: Ledger, connection: Connection, key: TableKey) -> TableRow | None:
    same = and_(tables.c.catalog == key.catalog, tables.c.address == key.address)
    if key.location is not None:
        # One table under two names: an Iceberg table renamed, or in two configurations.
        same = or_(same, tables.c.location == key.location)
    row = connection.execute(
        select(
            tables.c.number,
            tables.c.first_load_at,
            tables.c.checked_version,
            tables.c.forgotten_until,
        )
        .where(
            tables.c.tenant == ledger.tenant,
            tables.c.table_id == key.table_id,
            same,
        )
        .order_by(tables.c.number)
    ).first()
    return TableRow(row[0], key, *row[1:]) if row else None


def tables_with_open_loads(ledger: Ledger) -> list[TableRow]:
    """The tenant's tables for which some load is not over, whether or not its loader lives."""
    query = (
        select(
            tables.c.number,
            *KEY_COLUMNS,
            tables.c.first_load_at,
            tables.c.checked_version,
            tables.c.forgotten_until,
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
            TableRow(number, TableKey(*rest[: len(KEY_COLUMNS)]), *rest[len(KEY_COLUMNS) :])
            for number, *rest in connection.execute(query)
        ]


def namesakes(ledger: Ledger, table: TableRow) -> list[TableRow]:
    """Other tables that were where this one is and have loads that are not over."""
    key = table.key
    return [
        other
        for other in tables_with_open_loads(ledger)
        if (other.key.catalog, other.key.address) == (key.catalog, key.address)
        and other.key.table_id != key.table_id
    ]


def note_restore(ledger: Ledger, table: TableRow, ranges: list[tuple[int, int]]) -> bool:
    """Whether a restore took back anything we had not seen taken back: versions ``(low, high]``.

    Then the table is unchecked until it is read anew. A truncation may have been taken back too.
    """
    gone = or_(*(_between(files.c.table_version, *one) for one in ranges), false())
    emptied = or_(*(_between(tables.c.truncated_version, *one) for one in ranges), false())
    this = tables.c.number == table.number
    with ledger.write() as connection:
        lock_table(connection, table)
        dropped = connection.execute(
            delete(files).where(files.c.table_number == table.number, gone)
        ).rowcount
        truncated = connection.execute(select(tables.c.number).where(this, emptied)).first()
        if not (dropped or truncated or any(high > table.checked_version for _, high in ranges)):
            return False
        connection.execute(
            update(tables).where(this).values(checked_version=RESTORED, truncated_version=-1)
        )
    return True


def lock_table(connection: Connection, table: TableRow | int) -> None:
    """Before any file of the table is touched, as everybody does who records files."""
    number = table if isinstance(table, int) else table.number
    connection.execute(
        select(tables.c.number).where(tables.c.number == number).with_for_update(key_share=True)
    )


def _between(column: Column[int], low: int, high: int) -> ColumnElement[bool]:
    return and_(column > low, column <= high)


def void_records(
    ledger: Ledger, table: TableRow, ranges: list[tuple[int, int]], checked_version: int
) -> int:
    """Drop the records of commits that a restore took back: versions in ``(low, high]``.

    The version is not noted as checked while a load is open: its records come after this look.
    """
    dropped = 0
    with ledger.write() as connection:
        lock_table(connection, table)
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
    # One dialect alone: that of PostgreSQL takes a fifth as long to import as all of SQLAlchemy.
    if connection.dialect.name == "postgresql":
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)  # type: ignore[arg-type]
    from sqlalchemy.dialects import sqlite

    return sqlite.insert(table)  # type: ignore[arg-type]
