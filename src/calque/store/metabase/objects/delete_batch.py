"""Delete many objects in batches: of a bucket, expired ones, abandoned uploads.

A batch is one transaction: it reads candidates, locks their keys and then their
families, and deletes those that are still what they were. Every object goes through
``promotion.remove``, so copies elsewhere survive and pieces are freed exactly once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    bindparam,
    case,
    delete,
    func,
    literal_column,
    or_,
    select,
)

from calque.errors import FailedPrecondition, InvalidInput, Unavailable
from calque.store.metabase.accounts import quota
from calque.store.metabase.accounts.buckets import BucketRecord, missing_bucket
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.locks import lock_families, lock_keys
from calque.store.metabase.engine.statement import SQLITE, Statement
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model import checks as verify
from calque.store.metabase.model.object_keys import in_index_order
from calque.store.metabase.model.records import FreedSegment, ObjectRecord
from calque.store.metabase.model.schema import (
    COMMITTED,
    PENDING,
    buckets,
    objects,
    segments,
)
from calque.store.metabase.streams.lookup import (
    IS_COMMITTED,
    OBJECT_BY_STREAM,
    WITH_ANCESTOR,
    FoundObject,
    object_in,
)
from calque.store.metabase.streams.promotion import remove_all

_log = logging.getLogger(__name__)

BATCH = 200
"""Others wait while a batch holds its locks, on SQLite every other writer: so batches are short."""
MAX_BATCH = 1000
MAX_SEGMENTS = 10_000
"""Segments of one batch, but for an object that alone has more: they take the time, not objects."""
MAX_UNSEEN = 10_000
"""Uploads under way that go with their bucket in one transaction."""

_in_bucket = (
    objects.c.project_id == bindparam("project"),
    objects.c.bucket_name == bindparam("of_bucket"),
)
# That of an upload under way is not in its row yet.
_segment_count = case(
    (
        objects.c.status == literal_column("1"),
        select(func.count())
        .select_from(segments)
        .where(segments.c.stream_id == objects.c.stream_id)
        .scalar_subquery(),
    ),
    else_=objects.c.segment_count,
)


def _choose(
    name: str, order: Sequence[ColumnElement[Any]], *where: ColumnElement[bool]
) -> Statement:
    """Candidates, and how many segments each has."""
    found = WITH_ANCESTOR.add_columns(_segment_count).where(*where)
    return Statement(name, found.order_by(*order).limit(bindparam("page")))


OBJECTS_OF_BUCKET = _choose(
    "some objects of a bucket",
    (in_index_order(objects.c.object_key), objects.c.version),
    *_in_bucket,
)
LIVE_IN_BUCKET = Statement(
    "any live object of a bucket",
    select(objects.c.stream_id)
    .where(
        *_in_bucket,
        IS_COMMITTED,
        or_(objects.c.expires_at.is_(None), objects.c.expires_at > bindparam("now")),
    )
    .limit(1),
)
LOCK_BUCKET = Statement(
    "lock a bucket",
    select(buckets)
    .where(buckets.c.project_id == bindparam("project"), buckets.c.name == bindparam("of_bucket"))
    .with_for_update(),
)
DELETE_BUCKET_ROW = Statement(
    "delete a bucket row",
    delete(buckets).where(
        buckets.c.project_id == bindparam("project"), buckets.c.name == bindparam("of_bucket")
    ),
)
EXPIRED_OBJECTS = _choose(
    "expired objects",
    (objects.c.expires_at,),
    objects.c.expires_at.is_not(None),
    objects.c.expires_at <= bindparam("before"),
)
NEWER_SEGMENT = (
    select(segments.c.position)
    .where(
        segments.c.stream_id == objects.c.stream_id,
        segments.c.created_at > bindparam("idle_since"),
    )
    .exists()
)
ZOMBIE_OBJECTS = _choose(
    "abandoned uploads",
    (objects.c.zombie_deletion_deadline,),
    objects.c.zombie_deletion_deadline.is_not(None),
    objects.c.zombie_deletion_deadline <= bindparam("before"),
    objects.c.status == literal_column("1"),
    ~NEWER_SEGMENT,
)


class BatchResult(NamedTuple):
    """How many objects one batch deleted, and what is to be freed."""

    deleted: int
    freed: list[FreedSegment]


class Candidate(NamedTuple):
    """An object that may go, and how many segments go with it."""

    found: FoundObject
    segments: int


Candidates = Callable[[Transaction], list[FoundObject]]
Page = Callable[[Transaction, int], list[Candidate]]
"""Candidates, at most so many."""

StillTrue = Callable[[Transaction, ObjectRecord], bool]


@dataclass(frozen=True)
class DeleteBucket:
    """Delete a bucket with its pending uploads; with ``everything``, its objects too."""

    project_id: bytes
    name: str
    everything: bool = False
    batch: int = BATCH

    def __post_init__(self) -> None:
        verify.bucket_name(self.name)
        _check_batch(self.batch)


class BucketDeleted(NamedTuple):
    """The last step of deleting a bucket."""

    bucket: BucketRecord
    along: BatchResult
    """Uploads under way, and what had expired: they went in the same transaction."""


def delete_bucket(
    database: Database, request: DeleteBucket
) -> Iterator[BatchResult | BucketDeleted]:
    """Yield the result of each batch as it is committed, at last the bucket itself.

    Stopped midway, the bucket remains with what was not deleted yet.
    """
    place = {"project": request.project_id, "of_bucket": request.name}

    def candidates(transaction: Transaction) -> list[FoundObject]:
        rows = transaction.rows(OBJECTS_OF_BUCKET, {**place, "page": request.batch})
        return _few_enough(_candidates_in(rows))

    # Uploads may go on meanwhile: again and again, until the bucket is empty under its lock.
    while True:
        dropped = database.write(
            lambda transaction: _drop_if_empty(transaction, request), makes_room=True
        )
        if dropped is not None:
            yield dropped
            return
        while (result := _delete_batch(database, candidates, _any_will_do)).deleted:
            yield result


def _any_will_do(_transaction: Transaction, _record: ObjectRecord) -> bool:
    return True


def delete_expired(database: Database, *, batch: int = BATCH) -> Iterator[BatchResult]:
    """Delete objects, copies and uploads past their end; yields each committed batch."""
    _check_batch(batch)

    def candidates(transaction: Transaction, page: int) -> list[Candidate]:
        rows = transaction.rows(EXPIRED_OBJECTS, {"before": transaction.now, "page": page})
        return _candidates_in(rows)

    def still_expired(transaction: Transaction, record: ObjectRecord) -> bool:
        return record.is_expired(transaction.now)

    yield from _delete_batches(database, candidates, still_expired, batch)


def delete_zombies(
    database: Database, *, idle_us: int, batch: int = BATCH
) -> Iterator[BatchResult]:
    """Delete uploads past their deadline with no segment newer than ``idle_us``."""
    _check_batch(batch)

    def candidates(transaction: Transaction, page: int) -> list[Candidate]:
        now = transaction.now
        limits = {"before": now, "idle_since": now - idle_us, "page": page}
        return _candidates_in(transaction.rows(ZOMBIE_OBJECTS, limits))

    def still_pending(_transaction: Transaction, record: ObjectRecord) -> bool:
        return record.status == PENDING

    yield from _delete_batches(database, candidates, still_pending, batch)


def _delete_batches(
    database: Database, candidates: Page, still_true: StillTrue, batch: int
) -> Iterator[BatchResult]:
    """Batch after batch until nothing is left, but for rows that cannot be deleted.

    A damaged row fails its whole batch, and would fail every sweep to come. So the objects of such
    a batch are deleted one by one, and those that fail are passed over from then on.
    """
    left: set[bytes] = set()

    def choose(transaction: Transaction) -> list[FoundObject]:
        page = candidates(transaction, batch + len(left))
        return _few_enough([each for each in page if each.found.object.stream_id not in left])

    while len(left) <= MAX_BATCH:
        try:
            result = _delete_batch(database, choose, still_true)
        except Unavailable:
            raise  # that is the database, and no row of it
        except Exception:
            for each in database.read(choose):
                one = _delete_one(database, each.object, still_true)
                if one is None:
                    left.add(each.object.stream_id)
                else:
                    yield one
            continue
        if not result.deleted:
            return
        yield result


def _delete_one(
    database: Database, record: ObjectRecord, still_true: StillTrue
) -> BatchResult | None:
    """None where it cannot be deleted, which is logged."""

    def read_now(transaction: Transaction) -> list[FoundObject]:
        # It was read in an earlier transaction, and may have changed since.
        found = object_in(transaction.rows(OBJECT_BY_STREAM, {"stream_id": record.stream_id}))
        return [found] if found else []

    try:
        return _delete_batch(database, read_now, still_true)
    except Unavailable:
        raise
    except Exception as error:
        _log.warning(
            "an object in bucket %r cannot be deleted (is its row damaged? see `calque store "
            "fsck`): %s", record.bucket_name, error,
        )  # fmt: skip
        return None


def _delete_batch(database: Database, candidates: Candidates, still_true: StillTrue) -> BatchResult:
    def work(transaction: Transaction) -> BatchResult:
        # Chosen without a lock, since their keys are not known before. So each is read again
        # once its key is locked, and only goes if it is still what it was chosen for.
        chosen = candidates(transaction)
        lock_keys(transaction, [each.object.location for each in chosen])
        present = [
            each
            for each in _read_again(transaction, chosen)
            if still_true(transaction, each.object)
        ]
        lock_families(transaction, [(each.object.stream_id, each.ancestor) for each in present])
        return _remove_all(transaction, present)

    result = database.write(work, makes_room=True)
    database.let_others_write()
    return result


def _candidates_in(rows: list[Any]) -> list[Candidate]:
    return [
        Candidate(FoundObject(ObjectRecord(*fields), ancestor), count)
        for *fields, ancestor, count in rows
    ]


def _few_enough(candidates: Sequence[Candidate]) -> list[FoundObject]:
    """As many of the first as one batch may take, and one at least."""
    totals = accumulate(each.segments for each in candidates)
    within = sum(1 for total in totals if total <= MAX_SEGMENTS)
    return [each.found for each in candidates[: max(within, 1)]]


def _read_again(transaction: Transaction, chosen: list[FoundObject]) -> list[FoundObject]:
    """The same rows under the lock; a move may have taken one to another key meanwhile."""
    if transaction.dialect == SQLITE:
        return chosen  # they were chosen while nobody else could write
    answers = transaction.batch(
        [(OBJECT_BY_STREAM, {"stream_id": each.object.stream_id}) for each in chosen]
    )
    pairs = zip(chosen, map(object_in, answers), strict=True)
    return [now for was, now in pairs if now and now.object.location == was.object.location]


def _remove_all(transaction: Transaction, present: Sequence[FoundObject]) -> BatchResult:
    freed = remove_all(transaction, present)
    usage: dict[bytes, quota.Usage] = {}
    for each in present:
        if each.object.status == COMMITTED:
            project = each.object.project_id
            usage[project] = usage.get(project, quota.Usage()).minus(each.object)
    # By id: two sweeps that meet the same projects charge them in the same order.
    for project in sorted(usage):
        quota.charge(transaction, project, usage[project])
    return BatchResult(len(present), freed)


def _drop_if_empty(transaction: Transaction, request: DeleteBucket) -> BucketDeleted | None:
    """Drop a bucket in which nothing can be seen, and with it what is there unseen."""
    place = {"project": request.project_id, "of_bucket": request.name}
    # Nobody commits into the bucket from here on; whoever did so before is waited for.
    bucket = transaction.row(LOCK_BUCKET, place)
    if bucket is None:
        raise missing_bucket(request.name)
    if transaction.rows(LIVE_IN_BUCKET, {**place, "now": transaction.now}):
        if not request.everything:
            raise FailedPrecondition(
                f"bucket {request.name!r} is not empty",
                hint="Delete its objects first, or ask for everything to be deleted.",
            )
        return None
    unseen = _candidates_in(transaction.rows(OBJECTS_OF_BUCKET, {**place, "page": MAX_UNSEEN + 1}))
    if request.everything and len(unseen) > min(len(_few_enough(unseen)), request.batch):
        return None  # in batches, so that nobody waits for long
    if len(unseen) > MAX_UNSEEN:
        raise FailedPrecondition(
            f"bucket {request.name!r} has more than {MAX_UNSEEN} uploads under way",
            hint="Abort them first, or ask for everything to be deleted.",
        )
    going = [each.found for each in unseen]
    # Their keys need no lock: what would make one of them visible waits for the bucket.
    lock_families(transaction, [(each.object.stream_id, each.ancestor) for each in going])
    along = _remove_all(transaction, going)
    transaction.run(DELETE_BUCKET_ROW, place)
    return BucketDeleted(BucketRecord(*bucket), along)


def _check_batch(batch: int) -> None:
    if not 1 <= batch <= MAX_BATCH:
        raise InvalidInput(f"a batch holds 1 to {MAX_BATCH} objects, not {batch}")
