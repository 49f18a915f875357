"""Finish a move: the same stream under another key, in one transaction."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import bindparam, update

from calque.errors import InvalidInput
from calque.store.metabase.accounts import quota
from calque.store.metabase.copies.both_ends import ENDS_OF_MOVE, SOURCE_POSITIONS, read_ends
from calque.store.metabase.copies.operations import (
    DROP_CHUNKS,
    Operation,
    find_result,
    finish_step,
    keys_of_operation,
)
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.locks import key_locks, lock_families
from calque.store.metabase.engine.statement import Statement, rewrite_statement
from calque.store.metabase.engine.transaction import Parameters, Transaction
from calque.store.metabase.model import checks as verify
from calque.store.metabase.model.conditions import NO_CONDITIONS, Conditions
from calque.store.metabase.model.packed_keys import PackedKeys, key_of_row, nonce_of_row
from calque.store.metabase.model.records import FreedSegment, ObjectLocation, ObjectRecord
from calque.store.metabase.model.schema import objects, segments
from calque.store.metabase.objects.commit_object import Committed
from calque.store.metabase.streams.lookup import FoundObject, at, live
from calque.store.metabase.streams.promotion import remove

MOVE_OBJECT = Statement(
    "move an object row",
    update(objects)
    .where(objects.c.stream_id == bindparam("of_stream"))
    .values(
        bucket_name=bindparam("new_bucket"),
        object_key=bindparam("new_object_key"),
        version=bindparam("new_version"),
        encrypted_metadata_nonce=bindparam("new_nonce"),
        encrypted_metadata_encrypted_key=bindparam("new_key"),
    ),
)
REKEY_SEGMENTS = rewrite_statement(
    "re-key the segments of a stream",
    segments,
    {"encrypted_key_nonce": nonce_of_row, "encrypted_key": key_of_row},
    segments.c.stream_id == bindparam("of_stream"),
)


@dataclass(frozen=True)
class FinishMove:
    """The second half of a move; the keys are re-wrapped for the new name."""

    operation: Operation
    source: ObjectLocation
    source_stream_id: bytes
    target: ObjectLocation
    keys: PackedKeys
    metadata_key: bytes | None = None
    metadata_key_nonce: bytes | None = None
    conditions: Conditions = NO_CONDITIONS
    may_overwrite: bool = True

    def __post_init__(self) -> None:
        verify.location(self.source)
        verify.location(self.target, "new")
        verify.stream_id(self.source_stream_id)
        verify.wrapped_metadata_key(self.metadata_key, self.metadata_key_nonce, "new")
        if self.source.project_id != self.target.project_id:
            raise InvalidInput("source and destination belong to different projects")
        if self.source == self.target:
            raise InvalidInput("an object cannot be moved onto itself")

    def parameters(self, now: int) -> Parameters:
        """The values for the look at both ends and for ``rules.py``."""
        return {
            **at(self.target),
            "source_bucket": self.source.bucket,
            "source_key": self.source.key,
            "source_stream": self.source_stream_id,
            "now": now,
            "override": False,
            "rewrapped": bool(self.metadata_key),
            "operation_id": self.operation.operation_id,
        }


def finish_move(database: Database, request: FinishMove) -> Committed:
    """Rename the object; stream, creation time, pieces and references stay as they are."""
    return database.write(lambda transaction: _finish(transaction, request))


def _finish(transaction: Transaction, request: FinishMove) -> Committed:
    parameters = request.parameters(transaction.now)
    looks, positions = transaction.batch(
        [
            *key_locks(transaction, exclusive=[request.source, request.target]),
            (ENDS_OF_MOVE, parameters),
            (SOURCE_POSITIONS, parameters),
        ]
    )[-2:]
    ends = read_ends(looks)
    # Before every rule: a repeat finds its source gone, since the first one moved it.
    if ends.operation is not None and ends.operation.is_finished:
        again = find_result(transaction, ends.operation, request.target)
        return Committed(again, [], is_new=False)
    request.operation.check_time(transaction.now)
    ends.require_bucket(request.target.bucket)
    source = ends.require_source()
    request.conditions.check_source(source.object)
    visible = live(ends.existing, transaction.now)
    request.conditions.check_target(
        visible.object if visible else None, may_overwrite=request.may_overwrite
    )
    keys = keys_of_operation(transaction, ends.operation, request.keys)
    keys.must_match([row[0] for row in positions])
    ends.require_fit()
    freed = _clear_target(transaction, source, ends.existing)
    moved = _move(transaction, request, source.object, ends.version, keys)
    if ends.operation is not None:
        transaction.run(DROP_CHUNKS, {"of_operation": request.operation.operation_id})
    transaction.run(*finish_step(request.operation, moved.stream_id))
    # Last, since charging a shard locks its row, for which other commits of the project may wait.
    usage = quota.Usage()
    if ends.existing is not None:
        usage = usage.minus(ends.existing.object)
    quota.charge(transaction, request.target.project_id, usage)
    return Committed(moved, freed)


def _clear_target(
    transaction: Transaction, source: FoundObject, existing: FoundObject | None
) -> list[FreedSegment]:
    touched = [source, *([existing] if existing else [])]
    lock_families(transaction, [(each.object.stream_id, each.ancestor) for each in touched])
    return remove(transaction, existing) if existing is not None else []


def _move(
    transaction: Transaction,
    request: FinishMove,
    source: ObjectRecord,
    version: int,
    keys: PackedKeys,
) -> ObjectRecord:
    transaction.run(
        MOVE_OBJECT,
        {
            "of_stream": source.stream_id,
            "new_bucket": request.target.bucket,
            "new_object_key": request.target.key,
            "new_version": version,
            "new_nonce": request.metadata_key_nonce,
            "new_key": request.metadata_key,
        },
    )
    if len(keys):
        transaction.run(
            REKEY_SEGMENTS,
            {"of_stream": source.stream_id, "nonces": keys.nonces, "keys": keys.keys},
        )
    return source._replace(
        bucket_name=request.target.bucket,
        object_key=request.target.key,
        version=version,
        encrypted_metadata_nonce=request.metadata_key_nonce,
        encrypted_metadata_encrypted_key=request.metadata_key,
    )
