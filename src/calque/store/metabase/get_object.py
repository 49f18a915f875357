"""The object at a key: the committed one, unless it has expired."""

from __future__ import annotations

from typing import Any

from calque.errors import NotFound
from calque.store.metabase import verify
from calque.store.metabase.database import Database
from calque.store.metabase.lookup import (
    BUCKET_EXISTS,
    COMMITTED_AT,
    Found,
    at,
    found,
    live,
    missing_bucket,
)
from calque.store.metabase.transaction import Transaction
from calque.store.metabase.values import ObjectLocation, ObjectRecord


def get_object(database: Database, location: ObjectLocation) -> ObjectRecord:
    """The object, or ``NotFound`` that tells bucket and object apart."""
    verify.location(location)
    return database.read(lambda transaction: require_object(transaction, location)).object


def require_object(transaction: Transaction, location: ObjectLocation, which: str = "") -> Found:
    """The live object at ``location`` inside a transaction, or ``NotFound``."""
    return require_found(transaction, transaction.rows(COMMITTED_AT, at(location)), location, which)


def require_found(
    transaction: Transaction, rows: list[Any], location: ObjectLocation, which: str = ""
) -> Found:
    """The live object in rows of ``COMMITTED_AT``, or ``NotFound``."""
    object_ = live(found(rows), transaction.now)
    if object_ is None:
        if not transaction.rows(BUCKET_EXISTS, at(location)):
            raise missing_bucket(location.bucket, which)
        lead = f"{which} " if which else ""
        raise NotFound(f"{lead}object does not exist in bucket {location.bucket!r}")
    return object_
