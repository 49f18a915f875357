"""What looking after a store needs to remember: states of nodes, leases, queues, history."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def _number(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.BigInteger, nullable=False)


def _bytes(name: str) -> sa.Column[bytes]:
    return sa.Column(name, sa.LargeBinary, nullable=False)


def upgrade() -> None:
    """Add the columns of ``nodes`` and the tables of upkeep."""
    op.add_column("nodes", sa.Column("state", sa.Text, nullable=False, server_default="ok"))
    for name in ("state_since", "audits_good", "audits_wrong"):
        op.add_column("nodes", sa.Column(name, sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("nodes", sa.Column("left_at", sa.BigInteger, nullable=True))
    op.create_table(
        "leases",
        sa.Column("service", sa.Text, nullable=False),
        _bytes("holder"),
        _number("until"),
        sa.PrimaryKeyConstraint("service"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "upkeep_runs",
        sa.Column("service", sa.Text, nullable=False),
        _number("finished_at"),
        sa.Column("report", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("service"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "usage_history",
        _number("recorded_at"),
        sa.Column("scope", sa.Text, nullable=False),
        _bytes("project_id"),
        sa.Column("name", sa.Text, nullable=False),
        *map(_number, ("objects", "segments", "pieces")),
        *map(_number, ("logical_bytes", "physical_bytes", "saved_bytes")),
        sa.PrimaryKeyConstraint("recorded_at", "scope", "project_id", "name"),
        sqlite_with_rowid=False,
    )
    _create_queues()


def _create_queues() -> None:
    op.create_table(
        "repair_queue",
        _bytes("stream_id"),
        _number("position"),
        _bytes("root_piece_id"),
        _number("healthy"),
        _bytes("bad_pieces"),
        _number("queued_at"),
        _number("not_before"),
        sa.PrimaryKeyConstraint("stream_id", "position"),
        sqlite_with_rowid=False,
    )
    op.create_index("repair_queue_by_health", "repair_queue", ["healthy", "queued_at"])
    op.create_table(
        "silent_audits",
        sa.Column("alias", sa.Integer, nullable=False),
        _bytes("stream_id"),
        _number("position"),
        _bytes("root_piece_id"),
        *map(_number, ("stripe", "tries", "next_at")),
        sa.PrimaryKeyConstraint("alias", "stream_id", "position"),
        sqlite_with_rowid=False,
    )
    op.create_index("silent_audits_by_time", "silent_audits", ["next_at"])
