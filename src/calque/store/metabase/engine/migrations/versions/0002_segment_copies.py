"""The reference table of server-side copies."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create ``segment_copies`` with its index on the ancestor: no delete may scan it."""
    op.create_table(
        "segment_copies",
        sa.Column("stream_id", sa.LargeBinary, nullable=False),
        sa.Column("ancestor_stream_id", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("stream_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("segment_copies_by_ancestor", "segment_copies", ["ancestor_stream_id"])
