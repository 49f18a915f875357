"""What is said of a bucket as a whole: documents by their kind, for those who serve it."""

from __future__ import annotations

from sqlalchemy import and_, bindparam, delete, select
from sqlalchemy.dialects import postgresql, sqlite

from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.model.schema import bucket_documents, buckets

_there = and_(
    bucket_documents.c.project_id == bindparam("of_project"),
    bucket_documents.c.bucket_name == bindparam("of_bucket"),
    bucket_documents.c.kind == bindparam("of_kind"),
)
# A document belongs to the bucket it was written for, and not to a later one of the same name.
DOCUMENT = Statement(
    "document of a bucket",
    select(bucket_documents.c.document)
    .join(
        buckets,
        and_(
            buckets.c.project_id == bucket_documents.c.project_id,
            buckets.c.name == bucket_documents.c.bucket_name,
            buckets.c.created_at == bucket_documents.c.bucket_created_at,
        ),
    )
    .where(_there),
)
_KEY = ["project_id", "bucket_name", "kind"]
_CHANGED = ("bucket_created_at", "document")


def _upsert(insert: sqlite.Insert | postgresql.Insert) -> sqlite.Insert | postgresql.Insert:
    return insert.on_conflict_do_update(
        index_elements=_KEY, set_={name: insert.excluded[name] for name in _CHANGED}
    )


PUT_DOCUMENT = Statement(
    "put a document of a bucket",
    sqlite=_upsert(sqlite.insert(bucket_documents)),
    postgres=_upsert(postgresql.insert(bucket_documents)),
)
DELETE_DOCUMENT = Statement("delete a document of a bucket", delete(bucket_documents).where(_there))


def get_document(database: Database, project_id: bytes, bucket: str, kind: str) -> bytes | None:
    """The document of a bucket that is there, or ``None``."""
    found = database.read_rows(DOCUMENT, _where(project_id, bucket, kind))
    return bytes(found[0][0]) if found else None


def put_document(
    database: Database, project_id: bytes, bucket: str, created_at: int, kind: str, document: bytes
) -> None:
    """Write a document for the bucket that was made at ``created_at``."""
    row = {
        "project_id": project_id,
        "bucket_name": bucket,
        "kind": kind,
        "bucket_created_at": created_at,
        "document": document,
    }
    database.write(lambda transaction: transaction.run(PUT_DOCUMENT, row))


def delete_document(database: Database, project_id: bytes, bucket: str, kind: str) -> None:
    """Forget a document; again is nothing."""
    where = _where(project_id, bucket, kind)
    database.write(lambda transaction: transaction.run(DELETE_DOCUMENT, where))


def _where(project_id: bytes, bucket: str, kind: str) -> dict[str, object]:
    return {"of_project": project_id, "of_bucket": bucket, "of_kind": kind}
