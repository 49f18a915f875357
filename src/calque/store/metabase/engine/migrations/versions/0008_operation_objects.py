"""Objects of a prefix that is being copied or moved."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Create ``operation_objects``: what is prepared before it happens at once."""
    op.create_table(
        "operation_objects",
        sa.Column("operation_id", sa.LargeBinary, nullable=False),
        sa.Column("stream_id", sa.LargeBinary, nullable=False),
        sa.Column("new_stream_id", sa.LargeBinary, nullable=False),
        sa.Column("new_key", sa.LargeBinary, nullable=False),
        sa.Column("seen_metadata_key", sa.LargeBinary, nullable=True),
        sa.Column("metadata_nonce", sa.LargeBinary, nullable=True),
        sa.Column("metadata_key", sa.LargeBinary, nullable=True),
        sa.Column("key_count", sa.BigInteger, nullable=False),
        sa.Column("nonces", sa.LargeBinary, nullable=False),
        sa.Column("keys", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("operation_id", "stream_id"),
    )
