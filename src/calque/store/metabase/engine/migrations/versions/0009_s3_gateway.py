"""The keys of the S3 gateway, and what it is told of buckets as a whole."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

_NAME = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    """Make both tables."""
    op.create_table(
        "s3_keys",
        sa.Column("key_hash", sa.LargeBinary, nullable=False),
        sa.Column("sealed", sa.LargeBinary, nullable=False),
        sa.Column("note", sa.LargeBinary, nullable=False),
        sa.Column("created_at", sa.BigInteger, nullable=False),
        sa.PrimaryKeyConstraint("key_hash"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "bucket_documents",
        sa.Column("project_id", sa.LargeBinary, nullable=False),
        sa.Column("bucket_name", _NAME, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("bucket_created_at", sa.BigInteger, nullable=False),
        sa.Column("document", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("project_id", "bucket_name", "kind"),
        sqlite_with_rowid=False,
    )
