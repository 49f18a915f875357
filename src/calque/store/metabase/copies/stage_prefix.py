"""Prepare a copy or move of everything below a prefix: pages of what is there, and new keys for it.

Nothing happens to the objects: what a client sends is kept with the operation until Finish
(``finish_prefix.py``), so that a client that was killed can go on behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import (
    LargeBinary,
    and_,
    bindparam,
    delete,
    distinct,
    func,
    select,
    update,
)

from calque.errors import FailedPrecondition, InvalidInput, NotFound
from calque.store.metabase.accounts.buckets import BUCKET_EXISTS, require_bucket
from calque.store.metabase.copies.operations import (
    LOCK_OPERATION,
    OPEN_OPERATION,
    OPERATION,
    Operation,
    OperationRecord,
    operation_record,
    operation_row,
)
from calque.store.metabase.engine.bulk_insert import BulkInsert
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model import checks as verify
from calque.store.metabase.model.packed_keys import PackedKeys
from calque.store.metabase.model.records import (
    SegmentKey,
    new_stream_id,
)
from calque.store.metabase.model.schema import (
    COLLECTING,
    objects,
    operation_objects,
    operations,
    segments,
)
from calque.store.metabase.objects.list_objects import after_prefix, select_committed
from calque.store.metabase.streams.given_streams import give_streams, statement_of_streams

MAX_OBJECTS = 100_000
"""Of one operation: they are committed at once."""
MAX_PAGE = 1000

_staged = operation_objects.c

# Without the metadata, which may be larger than all else and is left as it is.
BELOW_FROM = Statement(
    "what to prepare of objects from a key",
    select_committed(
        objects.c.object_key,
        objects.c.stream_id,
        objects.c.encryption,
        objects.c.encrypted_metadata_nonce,
        objects.c.encrypted_metadata_encrypted_key,
        objects.c.total_plain_size,
        objects.c.segment_count,
    ),
)
KEYS_OF_STREAMS = statement_of_streams(
    "segment keys of streams",
    segments.c.stream_id,
    lambda given: (
        select(
            segments.c.stream_id,
            segments.c.position,
            segments.c.encrypted_key_nonce,
            segments.c.encrypted_key,
        )
        .where(given)
        .order_by(segments.c.stream_id, segments.c.position)
    ),
)
POSITIONS_OF_STREAMS = statement_of_streams(
    "positions of objects that are there",
    objects.c.stream_id,
    lambda given: (
        select(objects.c.stream_id, segments.c.position)
        .select_from(objects.outerjoin(segments, segments.c.stream_id == objects.c.stream_id))
        .where(given)
        .order_by(objects.c.stream_id, segments.c.position)
    ),
)
UNSTAGE = statement_of_streams(
    "take objects out of an operation",
    _staged.stream_id,
    lambda given: delete(operation_objects).where(
        _staged.operation_id == bindparam("of_operation", type_=LargeBinary), given
    ),
)
STAGE = BulkInsert("stage an object of an operation", operation_objects)
NOTE_STAGED = Statement(
    "note how many objects an operation has",
    update(operations)
    .where(operations.c.operation_id == bindparam("of_operation"))
    .values(result_stream_id=bindparam("staged")),
)
COUNT_NEW_KEYS = Statement(
    "objects of an operation, and their new keys",
    select(func.count(), func.count(distinct(_staged.new_key))).where(
        _staged.operation_id == bindparam("of_operation")
    ),
)
LAST_STAGED = Statement(
    "last object of an operation",
    select(func.max(objects.c.object_key))
    .select_from(operation_objects.join(objects, and_(objects.c.stream_id == _staged.stream_id)))
    .where(_staged.operation_id == bindparam("of_operation")),
)


class Prefix(NamedTuple):
    """A bucket of a project, and the beginning of encrypted keys in it: whole components."""

    project_id: bytes
    bucket: str
    encrypted: bytes

    def check(self, which: str = "") -> None:
        """``InvalidInput`` unless it can be a prefix."""
        verify.bucket_name(self.bucket, f"{which} bucket" if which else "bucket")
        if self.encrypted and not self.encrypted.endswith(b"/"):
            raise InvalidInput("a prefix must be empty or end in '/'")
        if len(self.encrypted) > verify.MAX_KEY_SIZE:
            raise InvalidInput("the prefix is longer than a key can be")


class ObjectBelow(NamedTuple):
    """What is needed of an object below a prefix."""

    object_key: bytes
    stream_id: bytes
    encryption: int
    metadata_nonce: bytes | None
    metadata_key: bytes | None
    plain_size: int
    segment_count: int


class PrefixEntry(NamedTuple):
    """An object below a prefix, and the wrapped keys of its segments."""

    object: ObjectBelow
    keys: list[SegmentKey]


class PrefixPage(NamedTuple):
    """Some objects, whether more follow, and what became of the operation so far."""

    entries: list[PrefixEntry]
    more: bool
    staged: int
    finished: bool


class StagedObject(NamedTuple):
    """An object as it will be: its whole new key, and its keys re-wrapped for it."""

    stream_id: bytes
    new_key: bytes
    seen_metadata_key: bytes | None
    metadata_nonce: bytes | None
    metadata_key: bytes | None
    keys: PackedKeys


@dataclass(frozen=True)
class PrefixOperation:
    """Everything below ``source`` to ``target``: copied, or moved."""

    operation: Operation
    source: Prefix
    target: Prefix
    move: bool
    overwrite: bool = False

    def __post_init__(self) -> None:
        self.source.check()
        self.target.check("new")
        if self.source.project_id != self.target.project_id:
            raise InvalidInput("source and destination belong to different projects")
        old, new = self.source.encrypted, self.target.encrypted
        if self.source.bucket == self.target.bucket and (
            old.startswith(new) or new.startswith(old)
        ):
            raise InvalidInput("one of the prefixes lies below the other, or they are the same")


def prefix_page(
    database: Database, asked: PrefixOperation, cursor: bytes | None, limit: int
) -> PrefixPage:
    """Objects behind ``cursor`` (relative to the prefix), or behind what was staged already."""
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidInput(f"a page holds 1 to {MAX_PAGE} objects, not {limit}")

    def work(transaction: Transaction) -> PrefixPage:
        buckets, targets, states = transaction.batch(
            [
                (BUCKET_EXISTS, _place(asked.source)),
                (BUCKET_EXISTS, _place(asked.target)),
                (OPERATION, {"operation_id": asked.operation.operation_id}),
            ]
        )
        require_bucket(buckets, asked.source.bucket)
        require_bucket(targets, asked.target.bucket, "destination")
        state = operation_record(states)
        if state is not None and state.is_finished:
            return PrefixPage([], False, 0, True)
        # Looked for by whoever goes on with an operation alone: it reads all that was staged.
        last = (
            transaction.rows(LAST_STAGED, {"of_operation": asked.operation.operation_id})[0][0]
            if cursor is None
            else asked.source.encrypted + cursor
        )
        rows = transaction.rows(
            BELOW_FROM,
            {
                "project": asked.source.project_id,
                "bucket": asked.source.bucket,
                "first": asked.source.encrypted if last is None else last + b"\0",
                "end": after_prefix(asked.source.encrypted),
                "now": transaction.now,
                "page": limit + 1,
            },
        )
        found = [ObjectBelow._make(row) for row in rows]
        entries = _with_keys(transaction, found[:limit])
        return PrefixPage(entries, len(entries) < len(found), staged_count(state), False)

    return database.read(work)


def _place(prefix: Prefix) -> dict[str, object]:
    return {"project_id": prefix.project_id, "bucket": prefix.bucket}


def _with_keys(transaction: Transaction, found: Sequence[ObjectBelow]) -> list[PrefixEntry]:
    """As many of ``found`` as have keys for one call, and one at least."""
    chosen: list[ObjectBelow] = []
    total = 0
    for record in found:
        if record.segment_count > verify.MAX_KEYS_PER_CALL:
            raise InvalidInput(
                f"an object below the prefix has {record.segment_count} segments, "
                f"the limit is {verify.MAX_KEYS_PER_CALL}",
                hint="Copy or move that one by itself first.",
            )
        total += record.segment_count
        if chosen and total > verify.MAX_KEYS_PER_CALL:
            break
        chosen.append(record)
    keys: dict[bytes, list[SegmentKey]] = {each.stream_id: [] for each in chosen}
    if chosen:
        given = give_streams(transaction, keys)
        for stream_id, *row in transaction.rows(KEYS_OF_STREAMS, given):
            keys[stream_id].append(SegmentKey(*row))
    return [PrefixEntry(record, keys[record.stream_id]) for record in chosen]


def stage_prefix(database: Database, asked: PrefixOperation, staged: Sequence[StagedObject]) -> int:
    """Keep new names and keys with the operation; how many it has by now. Again is the same."""
    if not 1 <= len(staged) <= MAX_PAGE:
        raise InvalidInput(f"1 to {MAX_PAGE} objects come in one call, not {len(staged)}")
    for each in staged:
        verify.stream_id(each.stream_id)
        verify.wrapped_metadata_key(each.metadata_key, each.metadata_nonce, "new")
        if bool(each.metadata_key) != bool(each.seen_metadata_key):
            raise InvalidInput("a metadata key is given without the one that it comes from")
        if not each.new_key.startswith(asked.target.encrypted):
            raise InvalidInput("a new key does not lie below the new prefix")
        if not len(asked.target.encrypted) < len(each.new_key) <= verify.MAX_KEY_SIZE:
            raise InvalidInput("a new key is empty or too long")

    def work(transaction: Transaction) -> int:
        asked.operation.check_time(transaction.now)
        of_operation = {"of_operation": asked.operation.operation_id}
        given = give_streams(transaction, [each.stream_id for each in staged])
        # Opened first and locked then: a Finish that commits meanwhile is seen.
        _, states, there = transaction.batch(
            [
                (OPEN_OPERATION, operation_row(asked.operation, COLLECTING, None)),
                (LOCK_OPERATION, {"operation_id": asked.operation.operation_id}),
                (POSITIONS_OF_STREAMS, given),
            ]
        )
        state = operation_record(states)
        if state is not None and state.is_finished:
            raise FailedPrecondition("this operation was finished before")
        _check_keys(staged, there)
        # What comes again replaces itself, and is not counted twice.
        replaced = transaction.run(UNSTAGE, {**given, **of_operation})
        STAGE.run(transaction, [_row(asked, each, transaction.now) for each in staged])
        count = staged_count(state) + len(staged) - replaced
        if count > MAX_OBJECTS:
            raise InvalidInput(
                f"more than {MAX_OBJECTS} objects lie below the prefix, which is the limit",
                hint="Take the prefixes below it one by one.",
            )
        transaction.run(NOTE_STAGED, {**of_operation, "staged": pack_count(count)})
        return count

    return database.write(work)


def _check_keys(staged: Sequence[StagedObject], there: Sequence[tuple[bytes, int | None]]) -> None:
    """Each object is there, comes once, and has a key for each of its segments."""
    if len({each.stream_id for each in staged}) < len(staged):
        raise InvalidInput("an object comes twice in one call")
    positions: dict[bytes, list[int]] = {}
    for stream_id, position in there:
        found = positions.setdefault(stream_id, [])
        if position is not None:
            found.append(position)
    # What went since it was read is no fault of the caller's, who is to begin again.
    if len(positions) < len(staged):
        raise changed_below()
    for each in staged:
        each.keys.must_match(positions[each.stream_id])


def pack_count(objects: int) -> bytes:
    """What an operation over a prefix has come to: it has no stream as its result."""
    return objects.to_bytes(8, "big")


def staged_count(state: OperationRecord | None) -> int:
    """How many objects such an operation has by now, or had when it was finished.

    Noted, since counting them for each page would cost a large operation more than all else.
    """
    return int.from_bytes((state and state.result_stream_id) or b"", "big")


def _row(asked: PrefixOperation, each: StagedObject, now: int) -> dict[str, object]:
    return {
        "operation_id": asked.operation.operation_id,
        "stream_id": each.stream_id,
        # What is moved stays the stream that it is.
        "new_stream_id": each.stream_id if asked.move else new_stream_id(now),
        "new_key": each.new_key,
        "seen_metadata_key": each.seen_metadata_key,
        "metadata_nonce": each.metadata_nonce,
        "metadata_key": each.metadata_key,
        "key_count": len(each.keys),
        "nonces": each.keys.nonces,
        "keys": each.keys.keys,
    }


def changed_below() -> FailedPrecondition:
    """What to say where an object went away or was replaced."""
    return FailedPrecondition(
        "something was deleted or replaced below the prefix since it was read", hint="Begin again."
    )


def nothing_there(bucket: str) -> NotFound:
    """What to say of an empty prefix."""
    return NotFound(f"there is nothing below the prefix in bucket {bucket!r}")
