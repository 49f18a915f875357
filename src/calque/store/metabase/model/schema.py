"""The tables, as they are after the last migration.

Times are microseconds since 1970 (UTC), so that both databases order and compare them
alike. Positions are ``part << 32 | index``. Keys, ids and names of objects are bytes and
compare bytewise. On SQLite the tables are clustered on their primary key.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)

from calque.store.metabase.model.object_keys import DIGEST, HEAD

PENDING = 1
COMMITTED = 3

metadata = MetaData()


# Bucket names compare bytewise, whatever the locale of a PostgreSQL cluster.
_NAME = Text().with_variant(Text(collation="C"), "postgresql")


def _bytes(name: str, *, nullable: bool = False) -> Column[bytes]:
    return Column(name, LargeBinary, nullable=nullable)


def _int(name: str, *, nullable: bool = False) -> Column[int]:
    return Column(name, BigInteger, nullable=nullable)


settings = Table(
    "settings",
    metadata,
    Column("name", Text, nullable=False),
    _bytes("value"),
    PrimaryKeyConstraint("name"),
    sqlite_with_rowid=False,
)

projects = Table(
    "projects",
    metadata,
    _bytes("project_id"),
    Column("name", Text, nullable=False, unique=True),
    _bytes("salt"),
    _int("created_at"),
    _int("limit_bytes", nullable=True),
    _int("limit_segments", nullable=True),
    PrimaryKeyConstraint("project_id"),
    sqlite_with_rowid=False,
)

# What a project uses is kept in shards so that commits do not queue on one row. A shard
# may go up to its allowance; allowances add up to the project's limit (see quota.py).
project_usage = Table(
    "project_usage",
    metadata,
    _bytes("project_id"),
    Column("shard", Integer, nullable=False),
    _int("bytes"),
    _int("segments"),
    _int("objects"),
    _int("allowed_bytes", nullable=True),
    _int("allowed_segments", nullable=True),
    # Rises with every charge: while the sum stands still, nothing a listing shows has changed.
    Column("changes", BigInteger, nullable=False, server_default="0"),
    PrimaryKeyConstraint("project_id", "shard"),
    sqlite_with_rowid=False,
)

api_keys = Table(
    "api_keys",
    metadata,
    _bytes("head"),
    _bytes("project_id"),
    _bytes("secret"),
    Column("name", Text, nullable=False),
    _int("created_at"),
    PrimaryKeyConstraint("head"),
    sqlite_with_rowid=False,
)

api_key_revocations = Table(
    "api_key_revocations",
    metadata,
    _bytes("tail"),
    _int("revoked_at"),
    PrimaryKeyConstraint("tail"),
    sqlite_with_rowid=False,
)

# The alias is the small number that stands for a node in the packed pieces of a segment.
nodes = Table(
    "nodes",
    metadata,
    Column("alias", Integer, nullable=False, autoincrement=False),
    _bytes("node_id"),
    Column("address", Text, nullable=False),
    Column("placement", Integer, nullable=False),
    Column("state", Text, nullable=False, server_default="ok"),
    Column("state_since", BigInteger, nullable=False, server_default="0"),
    _int("left_at", nullable=True),
    Column("audits_good", BigInteger, nullable=False, server_default="0"),
    Column("audits_wrong", BigInteger, nullable=False, server_default="0"),
    PrimaryKeyConstraint("alias"),
    Index("nodes_by_id", "node_id", unique=True),
)

buckets = Table(
    "buckets",
    metadata,
    _bytes("project_id"),
    Column("name", _NAME, nullable=False),
    _int("created_at"),
    Column("placement", Integer, nullable=False),
    PrimaryKeyConstraint("project_id", "name"),
    sqlite_with_rowid=False,
)

objects = Table(
    "objects",
    metadata,
    _bytes("project_id"),
    Column("bucket_name", _NAME, nullable=False),
    _bytes("object_key"),
    _int("version"),
    _bytes("stream_id"),
    _int("created_at"),
    _int("expires_at", nullable=True),
    Column("status", Integer, nullable=False),
    _int("segment_count"),
    _bytes("encrypted_metadata_nonce", nullable=True),
    _bytes("encrypted_metadata", nullable=True),
    _bytes("encrypted_metadata_encrypted_key", nullable=True),
    _int("total_plain_size"),
    _int("total_encrypted_size"),
    _int("fixed_segment_size"),
    _int("encryption"),
    _int("zombie_deletion_deadline", nullable=True),
    # Of SQLite alone: a key of 1,024 bytes does not fit into an index of PostgreSQL.
    PrimaryKeyConstraint("project_id", "bucket_name", "object_key", "version").ddl_if(
        dialect="sqlite"
    ),
    sqlite_with_rowid=False,
)
Index("objects_by_stream", objects.c.stream_id, unique=True)
_place = (objects.c.project_id, objects.c.bucket_name)
_KEY = (text(HEAD), text(DIGEST))
Index("objects_by_key", *_place, *_KEY, objects.c.version, unique=True).ddl_if(dialect="postgresql")
# At most one committed object a key, and the way to find it.
Index(
    "objects_committed",
    *_place,
    objects.c.object_key,
    unique=True,
    sqlite_where=text("status = 3"),
).ddl_if(dialect="sqlite")
Index(
    "objects_committed_by_key",
    *_place,
    *_KEY,
    unique=True,
    postgresql_where=text("status = 3"),
).ddl_if(dialect="postgresql")
Index(
    "objects_by_expiry",
    objects.c.expires_at,
    sqlite_where=text("expires_at IS NOT NULL"),
    postgresql_where=text("expires_at IS NOT NULL"),
)
Index(
    "objects_by_zombie_deadline",
    objects.c.zombie_deletion_deadline,
    sqlite_where=text("zombie_deletion_deadline IS NOT NULL"),
    postgresql_where=text("zombie_deletion_deadline IS NOT NULL"),
)

segments = Table(
    "segments",
    metadata,
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
    Column("placement", Integer, nullable=False),
    PrimaryKeyConstraint("stream_id", "position"),
    sqlite_with_rowid=False,
)

segment_copies = Table(
    "segment_copies",
    metadata,
    _bytes("stream_id"),
    _bytes("ancestor_stream_id"),
    PrimaryKeyConstraint("stream_id"),
    Index("segment_copies_by_ancestor", "ancestor_stream_id"),
    sqlite_with_rowid=False,
)

# A segment that is a part of another one, whose pieces it borrows: from ``skip`` on, ``length``
# plain bytes. The source always holds pieces itself, and outlives its object while it has slices.
segment_slices = Table(
    "segment_slices",
    metadata,
    _bytes("stream_id"),
    _int("position"),
    _bytes("source_stream_id"),
    _int("source_position"),
    _int("skip"),
    _int("length"),
    PrimaryKeyConstraint("stream_id", "position"),
    Index("segment_slices_by_source", "source_stream_id", "source_position"),
    sqlite_with_rowid=False,
)

COLLECTING = 1
FINISHED = 2

operations = Table(
    "operations",
    metadata,
    _bytes("operation_id"),
    _bytes("project_id"),
    Column("state", Integer, nullable=False),
    _bytes("result_stream_id", nullable=True),
    _int("expires_at"),
    PrimaryKeyConstraint("operation_id"),
    Index("operations_by_expiry", "expires_at"),
    sqlite_with_rowid=False,
)

# The keys of a copy or move with many segments, as they arrive: one row a call, packed.
operation_keys = Table(
    "operation_keys",
    metadata,
    _bytes("operation_id"),
    _int("first_position"),
    _int("last_position"),
    _int("key_count"),
    _bytes("positions"),
    _bytes("nonces"),
    _bytes("keys"),
    PrimaryKeyConstraint("operation_id", "first_position"),
)

# The objects below a prefix that is copied or moved, with their new names and keys, until the
# operation takes them all at once. The keys of segments are packed by position.
operation_objects = Table(
    "operation_objects",
    metadata,
    _bytes("operation_id"),
    _bytes("stream_id"),
    _bytes("new_stream_id"),
    _bytes("new_key"),
    _bytes("seen_metadata_key", nullable=True),
    _bytes("metadata_nonce", nullable=True),
    _bytes("metadata_key", nullable=True),
    _int("key_count"),
    _bytes("nonces"),
    _bytes("keys"),
    PrimaryKeyConstraint("operation_id", "stream_id"),
)

# Physical segments that nobody holds any more, until their pieces are gone from the nodes.
freed_segments = Table(
    "freed_segments",
    metadata,
    _bytes("root_piece_id"),
    _bytes("alias_pieces"),
    _int("freed_at"),
    PrimaryKeyConstraint("root_piece_id"),
    sqlite_with_rowid=False,
)

# Access keys of the S3 gateway; neither column opens without what the database does not hold.
s3_keys = Table(
    "s3_keys",
    metadata,
    _bytes("key_hash"),
    _bytes("sealed"),
    _bytes("note"),
    _int("created_at"),
    PrimaryKeyConstraint("key_hash"),
    sqlite_with_rowid=False,
)

# What the gateway is told of a bucket (CORS, lifecycle); the time tells a later bucket apart.
bucket_documents = Table(
    "bucket_documents",
    metadata,
    _bytes("project_id"),
    Column("bucket_name", _NAME, nullable=False),
    Column("kind", Text, nullable=False),
    _int("bucket_created_at"),
    _bytes("document"),
    PrimaryKeyConstraint("project_id", "bucket_name", "kind"),
    sqlite_with_rowid=False,
)

# One process at a time looks after one thing: whoever holds its row until then.
leases = Table(
    "leases",
    metadata,
    Column("service", Text, nullable=False),
    _bytes("holder"),
    _int("until"),
    PrimaryKeyConstraint("service"),
    sqlite_with_rowid=False,
)

# The last report of each service, as JSON.
upkeep_runs = Table(
    "upkeep_runs",
    metadata,
    Column("service", Text, nullable=False),
    _int("finished_at"),
    Column("report", Text, nullable=False),
    PrimaryKeyConstraint("service"),
    sqlite_with_rowid=False,
)

# Of each hour: a bucket by project and name, a node by its id in hex, the whole store.
usage_history = Table(
    "usage_history",
    metadata,
    _int("recorded_at"),
    Column("scope", Text, nullable=False),
    _bytes("project_id"),
    Column("name", Text, nullable=False),
    _int("objects"),
    _int("segments"),
    _int("pieces"),
    _int("logical_bytes"),
    _int("physical_bytes"),
    _int("saved_bytes"),
    PrimaryKeyConstraint("recorded_at", "scope", "project_id", "name"),
    sqlite_with_rowid=False,
)

# Segments with too few healthy pieces, the worst first.
repair_queue = Table(
    "repair_queue",
    metadata,
    _bytes("stream_id"),
    _int("position"),
    _bytes("root_piece_id"),
    _int("healthy"),
    _bytes("bad_pieces"),
    _int("queued_at"),
    _int("not_before"),
    PrimaryKeyConstraint("stream_id", "position"),
    Index("repair_queue_by_health", "healthy", "queued_at"),
    sqlite_with_rowid=False,
)

# Pieces whose node said nothing at an audit, to be asked for again.
silent_audits = Table(
    "silent_audits",
    metadata,
    Column("alias", Integer, nullable=False),
    _bytes("stream_id"),
    _int("position"),
    _bytes("root_piece_id"),
    _int("stripe"),
    _int("tries"),
    _int("next_at"),
    PrimaryKeyConstraint("alias", "stream_id", "position"),
    Index("silent_audits_by_time", "next_at"),
    sqlite_with_rowid=False,
)
