"""Begin an upload: a pending object, invisible until it is committed."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import insert

from calque.errors import InvalidInput
from calque.store.metabase.accounts.buckets import BUCKET_PLACEMENT, require_bucket
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model import checks as verify
from calque.store.metabase.model.records import (
    NO_METADATA,
    Encryption,
    ObjectLocation,
    ObjectRecord,
    WrappedMetadata,
    new_stream_id,
)
from calque.store.metabase.model.schema import PENDING, objects
from calque.store.metabase.streams.lookup import NEXT_VERSION, at

ZOMBIE_AFTER_US = 24 * 3600 * 1_000_000

INSERT_OBJECT = Statement("insert an object", insert(objects))


@dataclass(frozen=True)
class BeginObject:
    """A new upload to a key; several may be pending at one key."""

    location: ObjectLocation
    encryption: Encryption
    expires_at: int | None = None
    metadata: WrappedMetadata = NO_METADATA
    zombie_after_us: int = ZOMBIE_AFTER_US

    def __post_init__(self) -> None:
        verify.location(self.location)
        verify.metadata(self.metadata)
        verify.expiry(self.expires_at)
        if self.encryption.cipher <= 0 or not 0 < self.encryption.block_size < 2**31:
            raise InvalidInput("encryption parameters are missing or out of range")


def begin_object(database: Database, request: BeginObject) -> ObjectRecord:
    """Record the pending object under the next version of its key."""

    def work(transaction: Transaction) -> ObjectRecord:
        require_future(transaction, request.expires_at)
        bucket, version = transaction.batch(
            [
                (BUCKET_PLACEMENT, at(request.location)),
                (NEXT_VERSION, at(request.location)),
            ]
        )
        require_bucket(bucket, request.location.bucket)
        record = pending_record(request, version[0][0], transaction.now)
        transaction.run(INSERT_OBJECT, record._asdict())
        return record

    return database.write(work)


def require_future(transaction: Transaction, expires_at: int | None) -> None:
    """InvalidInput for an object that would be gone at once."""
    if expires_at is not None and expires_at <= transaction.now:
        raise InvalidInput("the expiry lies in the past")


def pending_record(request: BeginObject, version: int, now: int) -> ObjectRecord:
    """The row of an upload that begins."""
    return ObjectRecord(
        project_id=request.location.project_id,
        bucket_name=request.location.bucket,
        object_key=request.location.key,
        version=version,
        stream_id=new_stream_id(now),
        created_at=now,
        expires_at=request.expires_at,
        status=PENDING,
        segment_count=0,
        encrypted_metadata_nonce=request.metadata.nonce,
        encrypted_metadata=request.metadata.data,
        encrypted_metadata_encrypted_key=request.metadata.key,
        total_plain_size=0,
        total_encrypted_size=0,
        fixed_segment_size=0,
        encryption=request.encryption.encode(),
        zombie_deletion_deadline=now + request.zombie_after_us,
    )
