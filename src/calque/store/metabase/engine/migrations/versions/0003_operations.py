"""Copy and move operations, and the partial keys of those with many segments."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create ``operations`` and ``operation_keys``."""
    op.create_table(
        "operations",
        sa.Column("operation_id", sa.LargeBinary, nullable=False),
        sa.Column("project_id", sa.LargeBinary, nullable=False),
        sa.Column("state", sa.Integer, nullable=False),
        sa.Column("result_stream_id", sa.LargeBinary, nullable=True),
        sa.Column("expires_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("operation_id"),
        sqlite_with_rowid=False,
    )
    op.create_index("operations_by_expiry", "operations", ["expires_at"])
    op.create_table(
        "operation_keys",
        sa.Column("operation_id", sa.LargeBinary, nullable=False),
        sa.Column("first_position", sa.BigInteger, nullable=False),
        sa.Column("last_position", sa.BigInteger, nullable=False),
        sa.Column("key_count", sa.BigInteger, nullable=False),
        sa.Column("positions", sa.LargeBinary, nullable=False),
        sa.Column("nonces", sa.LargeBinary, nullable=False),
        sa.Column("keys", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("operation_id", "first_position"),
    )
