"""One bucket, and lists of them."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import bindparam, select

from calque.errors import InvalidInput
from calque.store.metabase.accounts.buckets import BucketRecord, missing_bucket
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.model import checks as verify
from calque.store.metabase.model.schema import buckets

MAX_PAGE = 1000

BUCKET = Statement(
    "bucket by name",
    select(buckets).where(
        buckets.c.project_id == bindparam("project"), buckets.c.name == bindparam("of_name")
    ),
)
BUCKETS_AFTER = Statement(
    "buckets after a name",
    select(buckets)
    .where(buckets.c.project_id == bindparam("project"), buckets.c.name > bindparam("after"))
    .order_by(buckets.c.name)
    .limit(bindparam("page")),
)


@dataclass(frozen=True)
class ListBuckets:
    """The buckets of a project whose name comes after ``cursor``."""

    project_id: bytes
    cursor: str = ""
    limit: int = MAX_PAGE

    def __post_init__(self) -> None:
        if not 1 <= self.limit <= MAX_PAGE:
            raise InvalidInput(f"a page holds 1 to {MAX_PAGE} buckets, not {self.limit}")
        if "\0" in self.cursor:  # which PostgreSQL does not take
            raise InvalidInput("the cursor holds a NUL, and no bucket is named so")


def get_bucket(database: Database, project_id: bytes, name: str) -> BucketRecord:
    """The bucket, or ``NotFound``."""
    verify.bucket_name(name)
    place = {"project": project_id, "of_name": name}
    row = database.read(lambda transaction: transaction.row(BUCKET, place))
    if row is None:
        raise missing_bucket(name)
    return BucketRecord(*row)


def list_buckets(database: Database, request: ListBuckets) -> tuple[list[BucketRecord], bool]:
    """A page of buckets by name, and whether more follow."""
    where = {
        "project": request.project_id,
        "after": request.cursor,
        "page": request.limit + 1,
    }
    rows = database.read(lambda transaction: transaction.rows(BUCKETS_AFTER, where))
    return [BucketRecord(*row) for row in rows[: request.limit]], len(rows) > request.limit
