"""Finish a copy: object, segments and reference appear in one transaction, or none does."""

from __future__ import annotations

from typing import Any

from sqlalchemy import bindparam, select

from calque.store.metabase.accounts import quota
from calque.store.metabase.copies.both_ends import (
    ENDS_OF_COPY,
    SOURCE_POSITIONS,
    BothEnds,
    read_copy,
    read_ends,
)
from calque.store.metabase.copies.copy_at_once import copy_at_once, copy_in_transaction
from calque.store.metabase.copies.copy_request import FinishCopy
from calque.store.metabase.copies.operations import (
    DROP_CHUNKS,
    find_result,
    finish_step,
    keys_of_operation,
)
from calque.store.metabase.copies.rules import conditions_of, require, room_rule
from calque.store.metabase.copies.store_copy import store_copy
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.locks import ancestor_of, copy_locks, lock_families
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Step, Transaction
from calque.store.metabase.model.packed_keys import PackedKeys
from calque.store.metabase.model.records import FreedSegment, ObjectRecord
from calque.store.metabase.objects.commit_object import Committed
from calque.store.metabase.objects.update_metadata import (
    SET_METADATA,
    metadata_parameters,
    with_metadata,
)
from calque.store.metabase.streams.lookup import FoundObject, live
from calque.store.metabase.streams.promotion import remove
from calque.store.metabase.streams.slices import SOURCES_OF, require_room

__all__ = ["FinishCopy", "finish_copy"]

_ROOM = room_rule(bindparam("ancestor"))
NOBODY = b""
"""The copy, which borrows of nobody before it is written."""
HAS_ROOM = Statement("room for one more copy of an ancestor", select(*conditions_of(_ROOM)))


def finish_copy(database: Database, request: FinishCopy) -> Committed:
    """Commit the copy; a repeat of one that succeeded returns the same object.

    Raises ``FailedPrecondition`` when the source went away, was replaced or expired since
    Begin. On any error rows, references and quota are exactly as before.
    """
    copied = copy_at_once(database, request)
    if copied is not None:
        return Committed(copied, [])
    return database.write(lambda transaction: _finish(transaction, request))


def _finish(transaction: Transaction, request: FinishCopy) -> Committed:
    copied = copy_in_transaction(transaction, request)
    if copied is not None:
        return Committed(copied, [])
    ends, copy, positions = _look(transaction, request)
    # Before every rule: a repeat must be told of its result even when the source is gone by now.
    if ends.operation is not None and ends.operation.is_finished:
        again = find_result(transaction, ends.operation, request.target)
        return Committed(again, [], is_new=False)
    request.operation.check_time(transaction.now)
    ends.require_bucket(request.target.bucket)
    source = ends.require_source()
    request.conditions.check_source(source.object)
    if request.source == request.target:
        return _onto_itself(transaction, request, ends, source.object)
    visible = live(ends.existing, transaction.now)
    request.conditions.check_target(
        visible.object if visible else None, may_overwrite=request.may_overwrite
    )
    keys = keys_of_operation(transaction, ends.operation, request.keys)
    keys.must_match(positions)
    ends.require_fit()
    return _store(transaction, request, ends, source, copy, keys)


def _look(
    transaction: Transaction, request: FinishCopy
) -> tuple[BothEnds, ObjectRecord, list[int]]:
    """Lock the keys, then see both ends, the copy to be, and the positions of the source."""
    parameters = request.parameters(transaction.now)
    rows, positions = transaction.batch(
        [
            *copy_locks(transaction, request.source, request.target),
            (ENDS_OF_COPY, parameters),
            (SOURCE_POSITIONS, parameters),
        ]
    )[-2:]
    return read_ends(rows), read_copy(rows), [row[0] for row in positions]


def _store(
    transaction: Transaction,
    request: FinishCopy,
    ends: BothEnds,
    source: FoundObject,
    copy: ObjectRecord,
    keys: PackedKeys,
) -> Committed:
    source, usage, freed = _make_room(transaction, ends, source)
    store_copy(
        transaction,
        copy,
        source.object.stream_id,
        _lender(source) if ends.is_remote else None,
        keys,
        request.operation,
        usage.plus(copy),
        resumed=ends.operation is not None,
    )
    return Committed(copy, freed)


def _make_room(
    transaction: Transaction, ends: BothEnds, source: FoundObject
) -> tuple[FoundObject, quota.Usage, list[FreedSegment]]:
    """Lock the families, remove what is at the destination, see that one more copy may be."""
    touched = [source] if ends.is_remote else []
    touched += [ends.existing] if ends.existing else []
    families = [(each.object.stream_id, each.ancestor) for each in touched]
    if ends.existing is None:
        steps = [_room_step(source), _sources_step(source)] if ends.is_remote else []
        answers = lock_families(transaction, families, steps)
        if answers:
            _require_room(transaction, answers)
        return source, quota.Usage(), []
    lock_families(transaction, families)
    freed = remove(transaction, ends.existing)
    # The removal may have promoted the source, or the ancestor it had; and where a copy of the
    # source was at the destination, one place is free again. So only now there is an answer.
    source = FoundObject(source.object, ancestor_of(transaction, source.object.stream_id))
    if ends.is_remote:
        _require_room(transaction, transaction.batch([_room_step(source), _sources_step(source)]))
    return source, quota.Usage().minus(ends.existing.object), freed


def _room_step(source: FoundObject) -> Step:
    return HAS_ROOM, {"ancestor": _lender(source)}


def _sources_step(source: FoundObject) -> Step:
    return SOURCES_OF, {"of_stream": source.object.stream_id}


def _require_room(transaction: Transaction, answers: list[list[Any]]) -> None:
    """One more may borrow of the ancestor, and of what the source's slices are cut from."""
    room, sources = answers
    require([_ROOM], room[0])
    require_room(transaction, NOBODY, [row[0] for row in sources])


def _lender(source: FoundObject) -> bytes:
    """The stream that lends a copy of ``source`` its pieces: references do not chain."""
    return source.ancestor or source.object.stream_id


def _onto_itself(
    transaction: Transaction, request: FinishCopy, ends: BothEnds, source: ObjectRecord
) -> Committed:
    """Without new metadata nothing changes; with it only the metadata does."""
    if not request.override_metadata:
        request.conditions.check_target(source, may_overwrite=True)
        return Committed(source, [], is_new=False)
    request.conditions.check_target(source, may_overwrite=request.may_overwrite)
    transaction.run(SET_METADATA, metadata_parameters(source, request.metadata))
    if ends.operation is not None:
        transaction.run(DROP_CHUNKS, {"of_operation": request.operation.operation_id})
    transaction.run(*finish_step(request.operation, source.stream_id))
    quota.count_change(transaction, source.project_id)
    return Committed(with_metadata(source, request.metadata), [], is_new=False)
