"""Segments that are parts of other segments."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Create ``segment_slices``: parts of an upload that are ranges of objects."""
    op.create_table(
        "segment_slices",
        sa.Column("stream_id", sa.LargeBinary, nullable=False),
        sa.Column("position", sa.BigInteger, nullable=False),
        sa.Column("source_stream_id", sa.LargeBinary, nullable=False),
        sa.Column("source_position", sa.BigInteger, nullable=False),
        sa.Column("skip", sa.BigInteger, nullable=False),
        sa.Column("length", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("stream_id", "position"),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "segment_slices_by_source", "segment_slices", ["source_stream_id", "source_position"]
    )
