"""Keys of any length on PostgreSQL, whose indexes hold entries of 2.7 kB."""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"

KEY = (
    "project_id, bucket_name, substr(object_key, 1, 2048), "
    "(CASE WHEN length(object_key) > 2048 THEN sha256(object_key) ELSE ''::bytea END)"
)


def upgrade() -> None:
    """Index the heads of keys, and a digest of those that are longer."""
    if op.get_bind().dialect.name != "postgresql":
        return
    op.execute(f"CREATE UNIQUE INDEX objects_by_key ON objects ({KEY}, version)")
    op.execute(f"CREATE UNIQUE INDEX objects_committed_by_key ON objects ({KEY}) WHERE status = 3")
    op.drop_index("objects_committed", "objects")
    op.drop_constraint("objects_pkey", "objects")
