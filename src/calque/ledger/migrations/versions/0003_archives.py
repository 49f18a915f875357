"""Sources may be moved to an archive instead of removed."""

from __future__ import annotations

from alembic import op
from sqlalchemy import Column, Text, inspect

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Where a queued source goes, and under which name; some ledgers have the columns already."""
    have = {column["name"] for column in inspect(op.get_bind()).get_columns("calque_purges")}
    for name in ("archive", "name"):
        if name not in have:
            op.add_column("calque_purges", Column(name, Text))
