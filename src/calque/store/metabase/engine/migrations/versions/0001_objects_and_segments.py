"""Projects, keys, nodes, buckets, objects and segments."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the tables that a store without copies needs."""
    _satellite_tables()
    _project_tables()
    _objects()
    _segments()


def _bytes(name: str, *, nullable: bool = False) -> sa.Column[bytes]:
    return sa.Column(name, sa.LargeBinary, nullable=nullable)


def _int(name: str, *, nullable: bool = False) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=nullable)


def _small(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False, autoincrement=False)


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False)


def _bucket(name: str) -> sa.Column[str]:
    bytewise = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    return sa.Column(name, bytewise, nullable=False)


def _satellite_tables() -> None:
    op.create_table(
        "settings",
        _text("name"),
        _bytes("value"),
        sa.PrimaryKeyConstraint("name"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "nodes",
        _small("alias"),
        _bytes("node_id"),
        _text("address"),
        _small("placement"),
        sa.PrimaryKeyConstraint("alias"),
    )
    op.create_index("nodes_by_id", "nodes", ["node_id"], unique=True)


def _project_tables() -> None:
    op.create_table(
        "projects",
        _bytes("project_id"),
        _text("name"),
        _bytes("salt"),
        _int("created_at"),
        _int("limit_bytes", nullable=True),
        _int("limit_segments", nullable=True),
        sa.PrimaryKeyConstraint("project_id"),
        sa.UniqueConstraint("name"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "project_usage",
        _bytes("project_id"),
        _small("shard"),
        _int("bytes"),
        _int("segments"),
        _int("objects"),
        _int("allowed_bytes", nullable=True),
        _int("allowed_segments", nullable=True),
        sa.PrimaryKeyConstraint("project_id", "shard"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "api_keys",
        _bytes("head"),
        _bytes("project_id"),
        _bytes("secret"),
        _text("name"),
        _int("created_at"),
        sa.PrimaryKeyConstraint("head"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "api_key_revocations",
        _bytes("tail"),
        _int("revoked_at"),
        sa.PrimaryKeyConstraint("tail"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "buckets",
        _bytes("project_id"),
        _bucket("name"),
        _int("created_at"),
        _small("placement"),
        sa.PrimaryKeyConstraint("project_id", "name"),
        sqlite_with_rowid=False,
    )


def _objects() -> None:
    op.create_table(
        "objects",
        _bytes("project_id"),
        _bucket("bucket_name"),
        _bytes("object_key"),
        _int("version"),
        _bytes("stream_id"),
        _int("created_at"),
        _int("expires_at", nullable=True),
        _small("status"),
        _int("segment_count"),
        _bytes("encrypted_metadata_nonce", nullable=True),
        _bytes("encrypted_metadata", nullable=True),
        _bytes("encrypted_metadata_encrypted_key", nullable=True),
        _int("total_plain_size"),
        _int("total_encrypted_size"),
        _int("fixed_segment_size"),
        _int("encryption"),
        _int("zombie_deletion_deadline", nullable=True),
        sa.PrimaryKeyConstraint("project_id", "bucket_name", "object_key", "version"),
        sqlite_with_rowid=False,
    )
    op.create_index("objects_by_stream", "objects", ["stream_id"], unique=True)
    _partial_index(
        "objects_committed", ["project_id", "bucket_name", "object_key"], "status = 3", unique=True
    )
    _partial_index("objects_by_expiry", ["expires_at"], "expires_at IS NOT NULL")
    _partial_index(
        "objects_by_zombie_deadline",
        ["zombie_deletion_deadline"],
        "zombie_deletion_deadline IS NOT NULL",
    )


def _partial_index(name: str, columns: list[str], where: str, *, unique: bool = False) -> None:
    op.create_index(
        name,
        "objects",
        columns,
        unique=unique,
        sqlite_where=sa.text(where),
        postgresql_where=sa.text(where),
    )


def _segments() -> None:
    op.create_table(
        "segments",
        _bytes("stream_id"),
        _int("position"),
        _int("created_at"),
        _int("repaired_at", nullable=True),
        _int("expires_at", nullable=True),
        _bytes("root_piece_id"),
        _bytes("encrypted_key_nonce"),
        _bytes("encrypted_key"),
        _int("encrypted_size"),
        _int("plain_size"),
        _int("plain_offset"),
        _bytes("encrypted_etag", nullable=True),
        _int("redundancy"),
        _bytes("inline_data", nullable=True),
        _bytes("remote_alias_pieces", nullable=True),
        _small("placement"),
        sa.PrimaryKeyConstraint("stream_id", "position"),
        sqlite_with_rowid=False,
    )
