"""Tables, files, loads, claims, results, errors and purges: the first ledger."""

from __future__ import annotations

from alembic import op
from sqlalchemy import (
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
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None

metadata = MetaData()

Key = String().with_variant(postgresql.VARCHAR(collation="C"), "postgresql")
Number = BigInteger().with_variant(Integer, "sqlite")


tables = Table(
    "calque_tables",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    Column("tenant", Key, nullable=False),
    Column("database", Key, nullable=False),
    Column("name", Key, nullable=False),
    Column("table_id", Key, nullable=False),
    Column("location", Text),
    Column("first_load_at", BigInteger),
    Column("checked_version", BigInteger, nullable=False, default=-1),
    Column("truncated_version", BigInteger, nullable=False, default=-1),
    UniqueConstraint("tenant", "database", "name", "table_id"),
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
    "calque_errors",
    metadata,
    Column("number", Number, primary_key=True, autoincrement=True),
    Column("load_id", String, nullable=False, index=True),
    Column("file", Text, nullable=False),
    Column("line", BigInteger, nullable=False),
    Column("record", BigInteger, nullable=False),
    Column("byte_offset", BigInteger),
    Column("column", Text),
    Column("character", BigInteger),
    Column("target_type", Text),
    Column("value", Text),
    Column("code", String, nullable=False),
    Column("message", Text, nullable=False),
    Column("raw", Text),
)

purges = Table(
    "calque_purges",
    metadata,
    Column("load_id", String, primary_key=True),
    Column("location", Key, primary_key=True),
    Column("identity", Text, nullable=False),
    Column("tries", Integer, nullable=False, default=0),
    Column("message", Text),
)


def upgrade() -> None:
    """Make what is not there: a ledger that has lost its notes may have its tables still."""
    metadata.create_all(op.get_bind())
