"""The object at a key: the committed one, unless it has expired."""

from __future__ import annotations

from typing import Any

from calque.errors import NotFound
from calque.store.metabase.accounts.buckets import BUCKET_EXISTS, missing_bucket
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model import checks as verify
from calque.store.metabase.model.records import ObjectLocation, ObjectRecord
from calque.store.metabase.streams.lookup import RECORD_AT, at


def get_object(database: Database, location: ObjectLocation) -> ObjectRecord:
    """The object, or ``NotFound`` that tells bucket and object apart."""
    verify.location(location)
    return database.read(lambda transaction: require_object(transaction, location))


def require_object(transaction: Transaction, location: ObjectLocation) -> ObjectRecord:
    """The live object at ``location`` inside a transaction, or ``NotFound``."""
    return require_record(transaction, transaction.rows(RECORD_AT, at(location)), location)


def require_record(
    transaction: Transaction, rows: list[Any], location: ObjectLocation, which: str = ""
) -> ObjectRecord:
    """The live object in rows of ``RECORD_AT``, or ``NotFound``."""
    record = ObjectRecord(*rows[0]) if rows else None
    if record is None or record.is_expired(transaction.now):
        if not transaction.rows(BUCKET_EXISTS, at(location)):
            raise missing_bucket(location.bucket, which)
        lead = f"{which} " if which else ""
        raise NotFound(f"{lead}object does not exist in bucket {location.bucket!r}")
    return record
