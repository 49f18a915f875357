"""Copy and move operations: what was finished, and the keys of long ones as they arrive.

A row is written only by Finish: when it commits, so that a repeat finds its result, and
when it stores a part of the keys. Rows live until the operation's time is over.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import bindparam, delete, func, insert, select
from sqlalchemy.dialects import postgresql, sqlite

from calque.errors import FailedPrecondition, InvalidInput
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Step, Transaction
from calque.store.metabase.model import checks as verify
from calque.store.metabase.model.packed_keys import PackedKeys
from calque.store.metabase.model.records import ObjectLocation, ObjectRecord
from calque.store.metabase.model.schema import (
    COLLECTING,
    FINISHED,
    operation_keys,
    operation_objects,
    operations,
)
from calque.store.metabase.streams.lookup import record_by_stream

OPERATION_ID_SIZE = 16

_keys = operation_keys.c

OPERATION = Statement(
    "operation by id",
    select(operations).where(operations.c.operation_id == bindparam("operation_id")),
)
FINISH_OPERATION = Statement(
    "record a finished operation",
    sqlite=(_sqlite := sqlite.insert(operations)).on_conflict_do_update(
        index_elements=["operation_id"],
        set_={"state": FINISHED, "result_stream_id": _sqlite.excluded.result_stream_id},
    ),
    postgres=(_postgres := postgresql.insert(operations)).on_conflict_do_update(
        index_elements=["operation_id"],
        set_={"state": FINISHED, "result_stream_id": _postgres.excluded.result_stream_id},
    ),
)
OPEN_OPERATION = Statement(
    "open an operation that is not there",
    sqlite=sqlite.insert(operations).on_conflict_do_nothing(),
    postgres=postgresql.insert(operations).on_conflict_do_nothing(),
)
LOCK_OPERATION = Statement(
    "lock an operation",
    select(operations)
    .where(operations.c.operation_id == bindparam("operation_id"))
    .with_for_update(),
)
DROP_CHUNK = Statement(
    "drop a chunk of keys",
    delete(operation_keys).where(
        _keys.operation_id == bindparam("of_operation"),
        _keys.first_position == bindparam("at_position"),
    ),
)
INSERT_CHUNK = Statement("insert a chunk of keys", insert(operation_keys))
CHUNKS = Statement(
    "chunks of an operation",
    select(_keys.positions, _keys.nonces, _keys["keys"])
    .where(_keys.operation_id == bindparam("of_operation"))
    .order_by(_keys.first_position),
)
PROGRESS = Statement(
    "progress of an operation",
    select(func.coalesce(func.sum(_keys.key_count), 0), func.max(_keys.last_position)).where(
        _keys.operation_id == bindparam("of_operation")
    ),
)
DROP_CHUNKS = Statement(
    "drop the chunks of an operation",
    delete(operation_keys).where(_keys.operation_id == bindparam("of_operation")),
)
DROP_STAGED = Statement(
    "drop the objects of an operation",
    delete(operation_objects).where(operation_objects.c.operation_id == bindparam("of_operation")),
)
EXPIRED_OPERATIONS = Statement(
    "expired operations",
    select(operations.c.operation_id)
    .where(operations.c.expires_at <= bindparam("before"))
    .order_by(operations.c.expires_at)
    .limit(bindparam("page"))
    .with_for_update(skip_locked=True),
)
DROP_OPERATION = Statement(
    "drop an operation",
    delete(operations).where(operations.c.operation_id == bindparam("of_operation")),
)


class OperationRecord(NamedTuple):
    """A row of ``operations``."""

    operation_id: bytes
    project_id: bytes
    state: int
    result_stream_id: bytes | None
    expires_at: int

    @property
    def is_finished(self) -> bool:
        """Whether the operation was committed."""
        return self.state == FINISHED


class OperationProgress(NamedTuple):
    """How far an operation with many segments has come."""

    finished: bool
    keys_received: int
    last_position: int | None


@dataclass(frozen=True)
class Operation:
    """The identity of a copy or move between its Begin and its Finish."""

    operation_id: bytes
    project_id: bytes
    expires_at: int

    def __post_init__(self) -> None:
        verify.exactly(self.operation_id, OPERATION_ID_SIZE, "operation id")

    def is_over(self, now: int) -> bool:
        """Whether the time between Begin and Finish has run out."""
        return now >= self.expires_at

    def check_time(self, now: int) -> None:
        """Refuse an operation whose time is over."""
        if self.is_over(now):
            raise FailedPrecondition(
                "the time of this operation is over", hint="Begin the copy or move again."
            )


def operation_record(rows: list[Any]) -> OperationRecord | None:
    """The operation in the rows of ``OPERATION``."""
    return OperationRecord(*rows[0]) if rows else None


def store_keys(database: Database, operation: Operation, keys: PackedKeys) -> OperationProgress:
    """Keep a part of an operation's keys; the same part again replaces itself."""
    if not len(keys):
        raise InvalidInput("a partial call must bring segment keys")

    def work(transaction: Transaction) -> OperationProgress:
        operation.check_time(transaction.now)
        # Opened first and locked then: parts that arrive at once count each other's keys, and
        # a Finish that commits meanwhile is seen.
        transaction.run(OPEN_OPERATION, operation_row(operation, COLLECTING, None))
        locked = operation_record(
            transaction.rows(LOCK_OPERATION, {"operation_id": operation.operation_id})
        )
        if locked is not None and locked.is_finished:
            return OperationProgress(True, 0, None)
        where = {"of_operation": operation.operation_id, "at_position": keys.positions[0]}
        transaction.run(DROP_CHUNK, where)
        received, last = transaction.rows(PROGRESS, where)[0]
        verify.operation_keys(received + len(keys))
        transaction.run(INSERT_CHUNK, _chunk(operation, keys))
        reached = max(last or 0, keys.positions[-1])
        return OperationProgress(False, int(received) + len(keys), reached)

    return database.write(work)


def operation_progress(database: Database, operation: Operation) -> OperationProgress:
    """What the metabase holds of the operation; nothing at all is no error."""

    def work(transaction: Transaction) -> OperationProgress:
        rows, sums = transaction.batch(
            [
                (OPERATION, {"operation_id": operation.operation_id}),
                (PROGRESS, {"of_operation": operation.operation_id}),
            ]
        )
        record = operation_record(rows)
        return OperationProgress(
            record is not None and record.is_finished, int(sums[0][0]), sums[0][1]
        )

    return database.read(work)


def find_result(
    transaction: Transaction, done: OperationRecord, target: ObjectLocation
) -> ObjectRecord:
    """The object that a finished operation made, if it is still there."""
    result = record_by_stream(transaction, done.result_stream_id or b"")
    if result is None or result.location != target:
        raise FailedPrecondition(
            "this operation was finished before, and its object was deleted or replaced since"
        )
    return result


def keys_of_operation(
    transaction: Transaction, record: OperationRecord | None, last: PackedKeys
) -> PackedKeys:
    """All keys of an operation: the stored parts and those of its last call."""
    if record is None:
        return last
    rows = transaction.rows(CHUNKS, {"of_operation": record.operation_id})
    chunks = [
        PackedKeys(PackedKeys.unpack_positions(positions), nonces, keys)
        for positions, nonces, keys in rows
    ]
    if len(last):
        # A repeated last part may be stored already; what comes with the call counts.
        chunks = [chunk for chunk in chunks if chunk.positions[0] != last.positions[0]]
        chunks.append(last)
    return PackedKeys.join(sorted(chunks, key=lambda chunk: chunk.positions))


def finish_step(operation: Operation, stream_id: bytes) -> Step:
    """The statement that records the result of an operation."""
    return FINISH_OPERATION, operation_row(operation, FINISHED, stream_id)


def sweep_operations(database: Database, *, batch: int = 100) -> Iterator[int]:
    """Remove operations whose time is over, with their keys; yields how many, by batch."""

    def work(transaction: Transaction) -> int:
        limits = {"before": transaction.now, "page": batch}
        ids = [row[0] for row in transaction.rows(EXPIRED_OPERATIONS, limits)]
        for operation_id in ids:
            transaction.run(DROP_CHUNKS, {"of_operation": operation_id})
            transaction.run(DROP_STAGED, {"of_operation": operation_id})
            transaction.run(DROP_OPERATION, {"of_operation": operation_id})
        return len(ids)

    while swept := database.write(work, makes_room=True):
        yield swept


def operation_row(operation: Operation, state: int, result: bytes | None) -> dict[str, Any]:
    """A row of ``operations``."""
    return {
        "operation_id": operation.operation_id,
        "project_id": operation.project_id,
        "state": state,
        "result_stream_id": result,
        "expires_at": operation.expires_at,
    }


def _chunk(operation: Operation, keys: PackedKeys) -> dict[str, Any]:
    return {
        "operation_id": operation.operation_id,
        "first_position": keys.positions[0],
        "last_position": keys.positions[-1],
        "key_count": len(keys),
        "positions": keys.pack_positions(),
        "nonces": keys.nonces,
        "keys": keys.keys,
    }
