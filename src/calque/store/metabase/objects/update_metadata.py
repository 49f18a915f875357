"""Replace the metadata of an object in place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, update

from calque.errors import FailedPrecondition, NotFound
from calque.store.metabase.accounts import quota
from calque.store.metabase.accounts.buckets import BUCKET_EXISTS, require_bucket
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.locks import key_locks
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model import checks as verify
from calque.store.metabase.model.records import ObjectLocation, ObjectRecord, WrappedMetadata
from calque.store.metabase.model.schema import objects
from calque.store.metabase.streams.lookup import RECORD_AT, at

SET_METADATA = Statement(
    "set the metadata of an object",
    update(objects)
    .where(objects.c.stream_id == bindparam("of_stream"))
    .values(
        encrypted_metadata_nonce=bindparam("new_nonce"),
        encrypted_metadata=bindparam("new_metadata"),
        encrypted_metadata_encrypted_key=bindparam("new_key"),
    ),
)


@dataclass(frozen=True)
class UpdateMetadata:
    """New metadata for the object at a location, which must still be ``stream_id``."""

    location: ObjectLocation
    stream_id: bytes
    metadata: WrappedMetadata

    def __post_init__(self) -> None:
        verify.location(self.location)
        verify.stream_id(self.stream_id)
        verify.metadata(self.metadata)


def update_metadata(database: Database, request: UpdateMetadata) -> ObjectRecord:
    """Replace it; data, references and creation time stay."""

    def work(transaction: Transaction) -> ObjectRecord:
        bucket, rows = transaction.batch(
            [
                *key_locks(transaction, exclusive=[request.location]),
                (BUCKET_EXISTS, at(request.location)),
                (RECORD_AT, at(request.location)),
            ]
        )[-2:]
        require_bucket(bucket, request.location.bucket)
        current = ObjectRecord(*rows[0]) if rows else None
        if current is None or current.is_expired(transaction.now):
            raise NotFound(f"object does not exist in bucket {request.location.bucket!r}")
        if current.stream_id != request.stream_id:
            raise FailedPrecondition("the object was replaced since it was read")
        transaction.run(SET_METADATA, metadata_parameters(current, request.metadata))
        quota.count_change(transaction, current.project_id)
        return with_metadata(current, request.metadata)

    return database.write(work)


def metadata_parameters(record: ObjectRecord, metadata: WrappedMetadata) -> dict[str, Any]:
    """The parameters of ``SET_METADATA``."""
    return {
        "of_stream": record.stream_id,
        "new_nonce": metadata.nonce,
        "new_metadata": metadata.data,
        "new_key": metadata.key,
    }


def with_metadata(record: ObjectRecord, metadata: WrappedMetadata) -> ObjectRecord:
    """``record`` with other metadata."""
    return record._replace(
        encrypted_metadata_nonce=metadata.nonce,
        encrypted_metadata=metadata.data,
        encrypted_metadata_encrypted_key=metadata.key,
    )
