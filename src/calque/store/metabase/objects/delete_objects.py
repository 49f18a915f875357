"""Delete the objects at many keys in one transaction; each key has an answer of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from calque.errors import CalqueError, ConditionNotMatch, InvalidInput
from calque.store.metabase.accounts import quota
from calque.store.metabase.accounts.buckets import BUCKET_EXISTS, require_bucket
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.locks import key_locks, lock_families
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model.records import FreedSegment, ObjectLocation
from calque.store.metabase.objects.delete_object import DeleteObject, require_match
from calque.store.metabase.streams.lookup import COMMITTED_AT, FoundObject, at, live, object_in
from calque.store.metabase.streams.promotion import remove_all

MAX_KEYS = 1000

Answer = bool | CalqueError
"""Whether there was an object, or why it is still there."""


@dataclass(frozen=True)
class DeleteObjects:
    """Deletes in one bucket, each with a condition of its own."""

    deletes: tuple[DeleteObject, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.deletes) <= MAX_KEYS:
            raise InvalidInput(f"1 to {MAX_KEYS} keys are deleted at once, not {len(self.deletes)}")
        places = {(each.location.project_id, each.location.bucket) for each in self.deletes}
        if len(places) > 1:
            raise InvalidInput("keys that are deleted at once must be of one bucket")


class ObjectsDeleted(NamedTuple):
    """The answers in the order of the keys, and what is to be freed."""

    answers: list[Answer]
    freed: list[FreedSegment]


def delete_objects(database: Database, request: DeleteObjects) -> ObjectsDeleted:
    """Delete them; NotFound is for the bucket only.

    A condition that does not hold keeps its own key and no other.
    """
    return database.write(lambda transaction: _delete(transaction, request), makes_room=True)


def _delete(transaction: Transaction, request: DeleteObjects) -> ObjectsDeleted:
    there = _read_objects(transaction, [each.location for each in request.deletes])
    answers: list[Answer] = []
    going: list[FoundObject] = []
    for each in request.deletes:
        found = there[each.location]
        try:
            require_match(each, found)
        except ConditionNotMatch as error:
            answers.append(error)
            continue
        answers.append(found is not None)
        if found is not None:
            going.append(found)
            there[each.location] = None  # a key that comes twice is gone the second time
    lock_families(transaction, [(each.object.stream_id, each.ancestor) for each in going])
    freed = remove_all(transaction, going)
    usage = quota.Usage()
    for gone in going:
        usage = usage.minus(gone.object)
    if going:
        quota.charge(transaction, going[0].object.project_id, usage)
    return ObjectsDeleted(answers, freed)


def _read_objects(
    transaction: Transaction, locations: list[ObjectLocation]
) -> dict[ObjectLocation, FoundObject | None]:
    distinct = list(dict.fromkeys(locations))
    bucket, *rows = transaction.batch(
        [
            *key_locks(transaction, exclusive=distinct),
            (BUCKET_EXISTS, at(distinct[0])),
            *((COMMITTED_AT, at(each)) for each in distinct),
        ]
    )[-len(distinct) - 1 :]
    require_bucket(bucket, distinct[0].bucket)
    found = (live(object_in(each), transaction.now) for each in rows)
    return dict(zip(distinct, found, strict=True))
