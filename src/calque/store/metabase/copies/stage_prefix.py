"""Prepare a copy or move of everything below a prefix: pages of what is there, and new keys for it.

Nothing happens to the objects: what a client sends is kept with the operation until Finish
(``finish_prefix.py``), so that a client that was killed can go on behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import ARRAY, BindParameter, Column, and_, bindparam, cast, distinct, func, select
from sqlalchemy.dialects import postgresql, sqlite

from calque.errors import FailedPrecondition, InvalidInput, NotFound
from calque.store.metabase.accounts.buckets import BUCKET_EXISTS, require_bucket
from calque.store.metabase.copies.operations import (
    LOCK_OPERATION,
    OPEN_OPERATION,
    OPERATION,
    Operation,
    operation_record,
    operation_row,
)
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.statement import POSTGRES, Statement
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model import checks as verify
from calque.store.metabase.model.packed_keys import PackedKeys
from calque.store.metabase.model.records import (
    ObjectRecord,
    SegmentKey,
    new_stream_id,
)
from calque.store.metabase.model.schema import (
    COLLECTING,
    objects,
    operation_objects,
    segments,
)
from calque.store.metabase.objects.list_objects import COMMITTED_FROM, after_prefix
from calque.store.metabase.streams.given_streams import give_streams, statement_of_streams

MAX_OBJECTS = 100_000
"""Of one operation: they are committed at once."""
MAX_PAGE = 1000

_staged = operation_objects.c

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
    "positions of streams",
    segments.c.stream_id,
    lambda given: (
        select(segments.c.stream_id, segments.c.position)
        .where(given)
        .order_by(segments.c.stream_id, segments.c.position)
    ),
)
WHICH_ARE_THERE = statement_of_streams(
    "which of some objects are there",
    objects.c.stream_id,
    lambda given: select(objects.c.stream_id).where(given),
)
_changed = [column.name for column in _staged if not column.primary_key]


def _many(column: Column[Any]) -> BindParameter[Any]:
    return bindparam(column.name, type_=ARRAY(column.type))


def _replace(insert: Any) -> Any:
    return insert.on_conflict_do_update(
        index_elements=["operation_id", "stream_id"],
        set_={name: insert.excluded[name] for name in _changed},
    )


STAGE = Statement(
    "stage an object of an operation", sqlite=_replace(sqlite.insert(operation_objects))
)
STAGE_MANY = Statement(
    "stage objects of an operation",
    postgres=_replace(
        postgresql.insert(operation_objects).from_select(
            [column.name for column in _staged],
            # Arrays of one length are gone through side by side; of NULLs alone they need a type.
            select(*(func.unnest(cast(_many(each), _many(each).type)) for each in _staged)),
        )
    ),
)
COUNT_STAGED = Statement(
    "objects of an operation",
    select(func.count()).where(_staged.operation_id == bindparam("of_operation")),
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


class PrefixEntry(NamedTuple):
    """An object below a prefix, and the wrapped keys of its segments."""

    object: ObjectRecord
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
        of_operation = {"of_operation": asked.operation.operation_id}
        buckets, targets, states, counts = transaction.batch(
            [
                (BUCKET_EXISTS, _place(asked.source)),
                (BUCKET_EXISTS, _place(asked.target)),
                (OPERATION, {"operation_id": asked.operation.operation_id}),
                (COUNT_STAGED, of_operation),
            ]
        )
        require_bucket(buckets, asked.source.bucket)
        require_bucket(targets, asked.target.bucket, "destination")
        state = operation_record(states)
        if state is not None and state.is_finished:
            return PrefixPage([], False, 0, True)
        # Looked for by whoever goes on with an operation alone: it reads all that was staged.
        last = (
            transaction.rows(LAST_STAGED, of_operation)[0][0]
            if cursor is None
            else asked.source.encrypted + cursor
        )
        rows = transaction.rows(
            COMMITTED_FROM,
            {
                "project": asked.source.project_id,
                "bucket": asked.source.bucket,
                "first": asked.source.encrypted if last is None else last + b"\0",
                "end": after_prefix(asked.source.encrypted),
                "now": transaction.now,
                "page": limit + 1,
            },
        )
        found = [ObjectRecord(*row) for row in rows]
        entries = _with_keys(transaction, found[:limit])
        return PrefixPage(entries, len(entries) < len(found), counts[0][0], False)

    return database.read(work)


def _place(prefix: Prefix) -> dict[str, object]:
    return {"project_id": prefix.project_id, "bucket": prefix.bucket}


def _with_keys(transaction: Transaction, found: Sequence[ObjectRecord]) -> list[PrefixEntry]:
    """As many of ``found`` as have keys for one call, and one at least."""
    chosen: list[ObjectRecord] = []
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
        transaction.run(OPEN_OPERATION, operation_row(asked.operation, COLLECTING, None))
        locked = operation_record(
            transaction.rows(LOCK_OPERATION, {"operation_id": asked.operation.operation_id})
        )
        if locked is not None and locked.is_finished:
            raise FailedPrecondition("this operation was finished before")
        positions: dict[bytes, list[int]] = {each.stream_id: [] for each in staged}
        if len(positions) < len(staged):
            raise InvalidInput("an object comes twice in one call")
        given = give_streams(transaction, positions)
        for stream_id, position in transaction.rows(POSITIONS_OF_STREAMS, given):
            positions[stream_id].append(position)
        # What went since it was read is no fault of the caller's, who is to begin again.
        if len(transaction.rows(WHICH_ARE_THERE, given)) < len(positions):
            raise changed_below()
        for each in staged:
            each.keys.must_match(positions[each.stream_id])
        rows = [_row(asked.operation, each, transaction.now) for each in staged]
        if transaction.dialect == POSTGRES:
            transaction.run(STAGE_MANY, {name: [row[name] for row in rows] for name in rows[0]})
        else:
            transaction.batch([(STAGE, row) for row in rows])
        count = int(
            transaction.rows(COUNT_STAGED, {"of_operation": asked.operation.operation_id})[0][0]
        )
        if count > MAX_OBJECTS:
            raise InvalidInput(
                f"more than {MAX_OBJECTS} objects lie below the prefix, which is the limit",
                hint="Take the prefixes below it one by one.",
            )
        return count

    return database.write(work)


def _row(operation: Operation, each: StagedObject, now: int) -> dict[str, object]:
    return {
        "operation_id": operation.operation_id,
        "stream_id": each.stream_id,
        "new_stream_id": new_stream_id(now),
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
