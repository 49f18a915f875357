"""A row for each rejected row became a row for each file."""

from __future__ import annotations

from itertools import groupby

from alembic import op
from sqlalchemy import Column, LargeBinary, MetaData, String, Table, insert, inspect, select
from sqlalchemy.dialects import postgresql

from calque.values.row_errors import RowError, pack

revision = "0002"
down_revision = "0001"

Key = String().with_variant(postgresql.VARCHAR(collation="C"), "postgresql")
errors = Table(
    "calque_row_errors",
    MetaData(),
    Column("load_id", String, primary_key=True),
    Column("file", Key, primary_key=True),
    Column("packed", LargeBinary, nullable=False),
)


def upgrade() -> None:
    """Pack the errors of each file, in the order of its rows."""
    connection = op.get_bind()
    errors.create(connection, checkfirst=True)
    if not inspect(connection).has_table("calque_errors"):
        return
    old = Table("calque_errors", MetaData(), autoload_with=connection)
    order = (old.c.load_id, old.c.file, old.c.record, old.c.number)
    found = connection.execute(select(old).order_by(*order)).mappings()
    for (load_id, file), rows in groupby(found, lambda row: (row["load_id"], row["file"])):
        packed = pack([row[name] for name in RowError._fields] for row in rows)
        connection.execute(insert(errors).values(load_id=load_id, file=file, packed=packed))
    old.drop(connection)
