"""Rows of S3 keys."""

from __future__ import annotations

from calque.store.metabase.accounts.s3_keys import (
    S3KeyRow,
    delete_key,
    find_key,
    insert_key,
    list_keys,
)
from calque.store.metabase.engine.database import Database
from tests.store.world import Clock


def test_a_key_from_its_making_to_its_end(database: Database, clock: Clock) -> None:
    """Found by its hash, listed oldest first, gone when it is deleted, also twice."""
    for name in (b"b", b"a"):
        insert_key(database, S3KeyRow(name * 32, b"sealed " + name, b"note"))
        clock.advance(1)
    found = find_key(database, b"a" * 32)
    assert found is not None
    assert (found.sealed, found.note) == (b"sealed a", b"note")
    assert [row.key_hash[:1] for row in list_keys(database)] == [b"b", b"a"]
    delete_key(database, b"a" * 32)
    delete_key(database, b"a" * 32)
    assert find_key(database, b"a" * 32) is None
    assert len(list_keys(database)) == 1
