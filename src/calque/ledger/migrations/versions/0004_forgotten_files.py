"""How young the files are of which records were dropped, and what is known of a file besides."""

from __future__ import annotations

from alembic import op
from sqlalchemy import BigInteger, Column, Text, inspect

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Some ledgers have the columns already."""
    for table, name, kind in (
        ("calque_tables", "forgotten_until", BigInteger()),
        ("calque_tables", "swept_to", Text()),
        ("calque_files", "metadata", Text()),
    ):
        have = {column["name"] for column in inspect(op.get_bind()).get_columns(table)}
        if name not in have:
            op.add_column(table, Column(name, kind))
