"""A count of changes beside what a project uses."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Every charge counts itself: by that a listing is known to be still true."""
    op.add_column(
        "project_usage", sa.Column("changes", sa.BigInteger, nullable=False, server_default="0")
    )
