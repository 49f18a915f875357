"""The last step is noted by Alembic; an older calque must see that it knows too little.

It looks at a version number that ended with 4 and refuses what is higher. Without the number it
would take the ledger for an empty one, and go through its own steps.
"""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Integer, MetaData, Table, delete, insert

revision = "0005"
down_revision = "0004"

version = Table("calque_ledger_version", MetaData(), Column("version", Integer, nullable=False))


def upgrade() -> None:
    """One above the last number that was given."""
    connection = op.get_bind()
    version.create(connection, checkfirst=True)
    connection.execute(delete(version))
    connection.execute(insert(version).values(version=5))
