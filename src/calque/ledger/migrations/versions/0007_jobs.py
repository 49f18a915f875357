"""Jobs of trees: what is left of them, and what failed. Never a row for each object."""

from __future__ import annotations

from alembic import op
from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)
from sqlalchemy.dialects import postgresql

revision = "0007"
down_revision = "0006"

metadata = MetaData()

Key = String().with_variant(postgresql.VARCHAR(collation="C"), "postgresql")

jobs = Table(
    "calque_jobs",
    metadata,
    Column("job_id", String, primary_key=True),
    Column("tenant", Key, nullable=False),
    Column("kind", String, nullable=False),
    Column("source", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("pair", String, nullable=False),
    Column("held_pair", String, unique=True),
    Column("request", Text, nullable=False),
    Column("state", String, nullable=False),
    Column("phase", String, nullable=False),
    Column("owner", String, nullable=False),
    Column("lease_until", BigInteger, nullable=False),
    Column("started_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    Column("finished_at", BigInteger),
    Column("totals", Text, nullable=False),
    Column("report", Text),
    Column("report_size", BigInteger),
    Column("message", Text),
)
Index("calque_jobs_by_pair", jobs.c.tenant, jobs.c.pair, jobs.c.started_at)

Table(
    "calque_job_ranges",
    metadata,
    Column("job_id", ForeignKey("calque_jobs.job_id"), primary_key=True),
    Column("tree", Integer, primary_key=True, autoincrement=False),
    Column("after", LargeBinary, primary_key=True),
    Column("up_to", LargeBinary),
)

Table(
    "calque_job_copies",
    metadata,
    Column("job_id", ForeignKey("calque_jobs.job_id"), primary_key=True),
    Column("tree", Integer, primary_key=True, autoincrement=False),
    Column("path", LargeBinary, primary_key=True),
    Column("checkpoint", Text, nullable=False),
)

Table(
    "calque_job_failures",
    metadata,
    Column("job_id", ForeignKey("calque_jobs.job_id"), primary_key=True),
    Column("path", LargeBinary, primary_key=True),
    Column("error", String, nullable=False),
    Column("message", Text),
)


def upgrade() -> None:
    metadata.create_all(op.get_bind())
