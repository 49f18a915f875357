"""A table's database and name are the user's; where it is found stands beside them.

Until now ``database`` was the word ``delta``, or ``iceberg:`` and a catalog, and ``name`` a
location, or an identifier in that catalog.
"""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, MetaData, String, Table, select, update
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"

Key = String().with_variant(postgresql.VARCHAR(collation="C"), "postgresql")


def upgrade() -> None:
    """Renamed columns keep their constraint: what makes two tables one does not change."""
    op.execute('ALTER TABLE calque_tables RENAME COLUMN "database" TO catalog')
    op.execute('ALTER TABLE calque_tables RENAME COLUMN "name" TO address')
    for name in ("database", "name"):
        op.add_column("calque_tables", Column(name, Key, nullable=False, server_default=""))
    connection = op.get_bind()
    tables = Table("calque_tables", MetaData(), autoload_with=connection)
    query = select(tables.c.number, tables.c.catalog, tables.c.address)
    for number, catalog, address in connection.execute(query).all():
        database, name = split(catalog, address)
        connection.execute(
            update(tables).where(tables.c.number == number).values(database=database, name=name)
        )


def split(catalog: str, address: str) -> tuple[str, str]:
    """What the configuration calls a table is not known here; the next load of it says so."""
    if catalog == "delta":
        database, _, name = address.rpartition("/")
        found = "://" in database and not database.endswith("://")
    else:
        database, _, name = address.rpartition(".")
        found = bool(database)
    return (database, name) if found and name else ("default", address)
