"""Create a bucket."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import insert

from calque.errors import AlreadyExists, InvalidInput
from calque.store.metabase.accounts.buckets import BUCKET_EXISTS, BucketRecord
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model import checks as verify
from calque.store.metabase.model.schema import buckets

INSERT_BUCKET = Statement("insert a bucket", insert(buckets))


@dataclass(frozen=True)
class CreateBucket:
    """A new bucket; its segments go to nodes of ``placement``."""

    project_id: bytes
    name: str
    placement: int = 0

    def __post_init__(self) -> None:
        verify.bucket_name(self.name)
        if not 0 <= self.placement < 2**15:
            raise InvalidInput(f"placement {self.placement} is out of range")


def create_bucket(database: Database, request: CreateBucket) -> BucketRecord:
    """Make the bucket, or ``AlreadyExists``."""

    def work(transaction: Transaction) -> BucketRecord:
        place = {"project_id": request.project_id, "bucket": request.name}
        if transaction.row(BUCKET_EXISTS, place):
            raise AlreadyExists(f"bucket {request.name!r} exists already")
        record = BucketRecord(request.project_id, request.name, transaction.now, request.placement)
        transaction.run(INSERT_BUCKET, record._asdict())
        return record

    return database.write(work)
