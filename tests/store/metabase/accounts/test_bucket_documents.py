"""Documents of buckets."""

from __future__ import annotations

from calque.store.metabase.accounts.bucket_documents import (
    delete_document,
    get_document,
    put_document,
)
from calque.store.metabase.accounts.create_bucket import CreateBucket, create_bucket
from calque.store.metabase.engine.database import Database
from tests.store.world import World


def test_a_document_belongs_to_its_bucket(world: World, database: Database) -> None:
    """It is replaced, read and deleted; one that was written for an earlier bucket is not there."""
    made = create_bucket(database, CreateBucket(world.project_id, "rules"))
    where = (world.project_id, "rules")
    assert get_document(database, *where, "cors") is None
    put_document(database, *where, made.created_at, "cors", b"one")
    put_document(database, *where, made.created_at, "cors", b"two")
    assert get_document(database, *where, "cors") == b"two"
    assert get_document(database, *where, "other") is None
    put_document(database, *where, made.created_at - 1, "old", b"of an earlier bucket")
    assert get_document(database, *where, "old") is None
    delete_document(database, *where, "cors")
    assert get_document(database, *where, "cors") is None
