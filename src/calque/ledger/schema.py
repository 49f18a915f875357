"""The ledger's tables, as they are after all steps of ``migrations/``."""

from __future__ import annotations

from sqlalchemy import (
    VARCHAR,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData()

Key = String().with_variant(VARCHAR(collation="C"), "postgresql")
"""Compared by bytes, as SQLite does and as object stores list: the merge join depends on it."""
Number = BigInteger().with_variant(Integer, "sqlite")

REBUILT = "rebuilt from the table"
"""What the history says of a load that was run with another ledger."""
OPEN = ("WRITING", "PREPARED")
"""The states of a load that is not over."""

tables = Table(
    "calque_tables",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    Column("tenant", Key, nullable=False),
    Column("catalog", Key, nullable=False),
    Column("address", Key, nullable=False),
    Column("table_id", Key, nullable=False),
    Column("location", Text),
    Column("first_load_at", BigInteger),
    Column("checked_version", BigInteger, nullable=False, default=-1),
    Column("truncated_version", BigInteger, nullable=False, default=-1),
    Column("forgotten_until", BigInteger),
    Column("swept_to", Text),
    Column("database", Key, nullable=False, server_default=""),
    Column("name", Key, nullable=False, server_default=""),
    # Not by the user's words for it: those may change, and two tables may have had the same.
    UniqueConstraint("tenant", "catalog", "address", "table_id"),
)

files = Table(
    "calque_files",
    metadata,
    Column("table_number", ForeignKey("calque_tables.number"), primary_key=True),
    Column("location", Key, primary_key=True),
    Column("size", BigInteger, nullable=False),
    Column("etag", Text),
    Column("last_modified", BigInteger),
    Column("version", Text),
    Column("token", Text),
    Column("content_hash", Text),
    Column("metadata", Text),
    Column("verified_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("load_id", String, nullable=False),
    Column("rows", BigInteger, nullable=False),
    Column("errors", BigInteger, nullable=False),
    Column("loaded_at", BigInteger, nullable=False),
    Column("table_version", BigInteger, nullable=False),
    Column("parts", Text),
    sqlite_with_rowid=False,
)

loads = Table(
    "calque_loads",
    metadata,
    Column("load_id", String, primary_key=True),
    Column("table_number", ForeignKey("calque_tables.number"), nullable=False),
    Column("label", String),
    Column("last", Boolean, nullable=False, default=True),
    Column("state", String, nullable=False),
    Column("owner", String, nullable=False),
    Column("lease_until", BigInteger, nullable=False),
    Column("started_at", BigInteger, nullable=False),
    Column("finished_at", BigInteger),
    Column("base_version", BigInteger, nullable=False),
    Column("table_version", BigInteger),
    Column("who", Text),
    Column("statement", Text),
    Column("engine", String),
    Column("purge", Boolean, nullable=False, default=False),
    Column("manifest", LargeBinary),
    Column("files", BigInteger, nullable=False, default=0),
    Column("rows", BigInteger, nullable=False, default=0),
    Column("errors", BigInteger, nullable=False, default=0),
    Column("bytes", BigInteger, nullable=False, default=0),
    Column("message", Text),
)
Index("calque_loads_by_table", loads.c.table_number, loads.c.started_at)
Index("calque_loads_by_label", loads.c.label)
Index("calque_loads_open", loads.c.state, loads.c.lease_until)

claims = Table(
    "calque_claims",
    metadata,
    Column("table_number", ForeignKey("calque_tables.number"), primary_key=True),
    Column("location", Key, primary_key=True),
    Column("load_id", ForeignKey("calque_loads.load_id"), nullable=False, index=True),
)

results = Table(
    "calque_results",
    metadata,
    Column("load_id", String, primary_key=True),
    Column("location", Key, primary_key=True),
    Column("name", Text, nullable=False),
    Column("status", String, nullable=False),
    Column("rows_parsed", BigInteger, nullable=False),
    Column("rows_loaded", BigInteger, nullable=False),
    Column("errors", BigInteger, nullable=False),
    Column("first_error", Text),
    Column("bytes", BigInteger, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("message", Text),
)

errors = Table(
    "calque_row_errors",
    metadata,
    Column("load_id", String, primary_key=True),
    Column("file", Key, primary_key=True),
    Column("packed", LargeBinary, nullable=False),
)

purges = Table(
    "calque_purges",
    metadata,
    Column("load_id", String, primary_key=True),
    Column("location", Key, primary_key=True),
    Column("identity", Text, nullable=False),
    Column("tries", Integer, nullable=False, default=0),
    Column("message", Text),
    Column("archive", Text),
    Column("name", Text),
)

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

job_ranges = Table(
    "calque_job_ranges",
    metadata,
    Column("job_id", ForeignKey("calque_jobs.job_id"), primary_key=True),
    Column("tree", Integer, primary_key=True, autoincrement=False),
    Column("after", LargeBinary, primary_key=True),
    Column("up_to", LargeBinary),
)

job_copies = Table(
    "calque_job_copies",
    metadata,
    Column("job_id", ForeignKey("calque_jobs.job_id"), primary_key=True),
    Column("tree", Integer, primary_key=True, autoincrement=False),
    Column("path", LargeBinary, primary_key=True),
    Column("checkpoint", Text, nullable=False),
)

job_acts = Table(
    "calque_job_acts",
    metadata,
    Column("job_id", ForeignKey("calque_jobs.job_id"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("tree", Integer, nullable=False),
    Column("packed", LargeBinary, nullable=False),
)

job_failures = Table(
    "calque_job_failures",
    metadata,
    Column("job_id", ForeignKey("calque_jobs.job_id"), primary_key=True),
    Column("path", LargeBinary, primary_key=True),
    Column("error", String, nullable=False),
    Column("message", Text),
)
