"""Pieces that wait to be deleted on their nodes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Create ``freed_segments``: what a delete lets go is written down in its own transaction."""
    op.create_table(
        "freed_segments",
        sa.Column("root_piece_id", sa.LargeBinary, nullable=False),
        sa.Column("alias_pieces", sa.LargeBinary, nullable=False),
        sa.Column("freed_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("root_piece_id"),
        sqlite_with_rowid=False,
    )
