"""The ledger's tables, and the versions they went through."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
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
    insert,
    inspect,
    select,
    text,
    update,
)
from sqlalchemy.dialects import postgresql

from calque.errors import ConfigInvalid
from calque.values.row_errors import RowError, pack

metadata = MetaData()

Key = String().with_variant(postgresql.VARCHAR(collation="C"), "postgresql")
"""Compared by bytes, as SQLite does and as object stores list: the merge join depends on it."""
Number = BigInteger().with_variant(Integer, "sqlite")

OPEN = ("WRITING", "PREPARED")
"""The states of a load that is not over."""

version = Table(
    "calque_ledger_version",
    metadata,
    Column("version", Integer, nullable=False),
)

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
    Column("forgotten_until", BigInteger),
    Column("swept_to", Text),
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


def _first(connection: Connection) -> None:
    metadata.create_all(connection)


def _pack_errors(connection: Connection) -> None:
    """A row for each rejected row became a row for each file."""
    if not inspect(connection).has_table("calque_errors"):
        return
    errors.create(connection, checkfirst=True)
    old = Table("calque_errors", MetaData(), autoload_with=connection)
    order = (old.c.load_id, old.c.file, old.c.record, old.c.number)
    found = connection.execute(select(old).order_by(*order)).mappings()
    for (load_id, file), rows in groupby(found, lambda row: (row["load_id"], row["file"])):
        packed = pack([row[name] for name in RowError._fields] for row in rows)
        connection.execute(insert(errors).values(load_id=load_id, file=file, packed=packed))
    old.drop(connection)


def _archives(connection: Connection) -> None:
    """Sources may be moved instead of removed; a ledger made today has the columns already."""
    have = {column["name"] for column in inspect(connection).get_columns(purges.name)}
    for name in ("archive", "name"):
        if name not in have:
            connection.execute(text(f"ALTER TABLE {purges.name} ADD COLUMN {name} TEXT"))


def _forgotten(connection: Connection) -> None:
    """How young the files are of which records were dropped, and where to look next for more.

    And what is known about a file besides its identity.
    """
    for table, name, kind in (
        (tables, "forgotten_until", "BIGINT"),
        (tables, "swept_to", "TEXT"),
        (files, "metadata", "TEXT"),
    ):
        have = {column["name"] for column in inspect(connection).get_columns(table.name)}
        if name not in have:
            connection.execute(text(f"ALTER TABLE {table.name} ADD COLUMN {name} {kind}"))


MIGRATIONS: tuple[Callable[[Connection], None], ...] = (
    _first,
    _pack_errors,
    _archives,
    _forgotten,
)
"""Step n brings a ledger from version n to n + 1; a step that was released never changes."""


def is_current(connection: Connection) -> bool:
    """Whether the ledger has this version; a look that locks nobody out."""
    if not inspect(connection).has_table(version.name):
        return False
    return connection.execute(select(version.c.version)).scalar() == len(MIGRATIONS)


def migrate(connection: Connection) -> None:
    """Bring the ledger to this version, inside the caller's transaction."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(7112405)"))
    version.create(connection, checkfirst=True)
    current = connection.execute(select(version.c.version)).scalar()
    if current is None:
        connection.execute(insert(version).values(version=0))
        current = 0
    if current > len(MIGRATIONS):
        raise ConfigInvalid(
            f"the ledger has version {current}, this calque knows {len(MIGRATIONS)}",
            hint="Use the newer calque that wrote it.",
        )
    for step in MIGRATIONS[current:]:
        step(connection)
    if current < len(MIGRATIONS):
        connection.execute(update(version).values(version=len(MIGRATIONS)))
