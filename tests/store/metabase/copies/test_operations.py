"""Copies and moves with more segments than one call carries."""

from __future__ import annotations

import os

import pytest
from sqlalchemy import insert

from calque.errors import FailedPrecondition, InvalidInput
from calque.store.metabase.copies.begin_copy import BeginCopy, begin_copy
from calque.store.metabase.copies.finish_copy import FinishCopy
from calque.store.metabase.copies.operations import (
    Operation,
    operation_progress,
    store_keys,
    sweep_operations,
)
from calque.store.metabase.model.checks import MAX_KEYS_PER_CALL
from calque.store.metabase.model.packed_keys import PackedKeys
from calque.store.metabase.model.records import NO_METADATA, Position, SegmentKey
from calque.store.metabase.model.schema import segments
from calque.store.metabase.objects.commit_object import CommitObject, commit_object
from tests.store.world import HOUR_US, REMOTE, Layout, World

FIVE = Layout.of(*[REMOTE] * 5)


def _chunks(world: World, size: int) -> list[PackedKeys]:
    keys = world.rewrapped(world.at("a"), world.at("b"))
    return [PackedKeys.of(keys[at : at + size]) for at in range(0, len(keys), size)]


def _last(world: World, operation: Operation, chunk: PackedKeys) -> FinishCopy:
    return world.finishing(world.at("a"), world.at("b"), operation=operation, keys=chunk)


def test_keys_in_chunks(world: World) -> None:
    """Nothing is visible until the last call; then the copy is there, whole, and no key is left."""
    world.upload("a", FIVE)
    operation = world.operation()
    first, second, last = _chunks(world, 2)
    assert store_keys(world.database, operation, first).keys_received == 2
    progress = store_keys(world.database, operation, second)
    assert progress == (False, 4, Position(0, 3).encode())
    assert len(world.table("objects")) == 1
    copy = world.finish(_last(world, operation, last))
    assert copy.segment_count == 5
    assert world.download(world.at("b")) == world.download(world.at("a"))
    keys = {row[7] for row in world.table("segments") if row[0] == copy.stream_id}
    sent = b"".join(chunk.keys for chunk in (first, second, last))
    assert keys == {sent[at : at + 48] for at in range(0, len(sent), 48)}
    assert world.table("operation_keys") == []
    assert operation_progress(world.database, operation).finished


def test_chunks_in_any_order_and_twice(world: World) -> None:
    """A retried chunk replaces itself; the order of calls does not matter."""
    world.upload("a", FIVE)
    operation = world.operation()
    first, second, last = _chunks(world, 2)
    for chunk in (second, first, second, first):
        store_keys(world.database, operation, chunk)
    assert operation_progress(world.database, operation).keys_received == 4
    assert world.finish(_last(world, operation, last)).segment_count == 5


def test_all_keys_in_partial_calls(world: World) -> None:
    """The last call may bring no keys at all."""
    world.upload("a", FIVE)
    operation = world.operation()
    for chunk in _chunks(world, 2):
        store_keys(world.database, operation, chunk)
    assert world.finish(_last(world, operation, PackedKeys())).segment_count == 5


def test_a_missing_chunk(world: World) -> None:
    """The commit is refused with both counts, and can be mended."""
    world.upload("a", FIVE)
    operation = world.operation()
    first, second, last = _chunks(world, 2)
    store_keys(world.database, operation, first)
    with world.unchanged(InvalidInput, match="3 segment keys.*5 segments"):
        world.finish(_last(world, operation, last))
    store_keys(world.database, operation, second)
    assert world.finish(_last(world, operation, last)).segment_count == 5


def test_overlapping_chunks(world: World) -> None:
    """Two chunks with the same position are refused."""
    world.upload("a", FIVE)
    operation = world.operation()
    keys = world.rewrapped(world.at("a"), world.at("b"))
    store_keys(world.database, operation, PackedKeys.of(keys[:3]))
    store_keys(world.database, operation, PackedKeys.of(keys[2:4]))
    with world.unchanged(InvalidInput, match="overlap"):
        world.finish(_last(world, operation, PackedKeys.of(keys[4:])))


def test_an_empty_partial_call(world: World) -> None:
    """A partial call without keys is refused."""
    with world.unchanged(InvalidInput, match="must bring"):
        store_keys(world.database, world.operation(), PackedKeys())


def test_a_killed_client_resumes(world: World) -> None:
    """The metabase tells how far the keys came; another process goes on from there."""
    world.upload("a", FIVE)
    operation = world.operation()
    store_keys(world.database, operation, _chunks(world, 2)[0])
    progress = operation_progress(world.database, operation)
    assert progress.last_position is not None
    page = begin_copy(
        world.database,
        BeginCopy(world.at("a"), world.at("b"), cursor=Position.decode(progress.last_position)),
    )
    rest = [SegmentKey(key.position, os.urandom(12), os.urandom(48)) for key in page.keys]
    assert world.finish(_last(world, operation, PackedKeys.of(rest))).segment_count == 5


def test_an_abandoned_copy_is_swept(world: World) -> None:
    """After its time keys and operation go, and it cannot be finished any more."""
    world.upload("a", FIVE)
    operation = world.operation()
    first, *_ = _chunks(world, 2)
    store_keys(world.database, operation, first)
    assert list(sweep_operations(world.database)) == []
    world.clock.advance(25 * HOUR_US)
    assert list(sweep_operations(world.database)) == [1]
    assert world.table("operations") == world.table("operation_keys") == []
    with world.unchanged(FailedPrecondition, match="time"):
        store_keys(world.database, operation, first)
    with world.unchanged(FailedPrecondition, match="time"):
        world.finish(_last(world, operation, first))


def test_source_replaced_between_chunks(world: World) -> None:
    """The source is looked at again in the commit; the keys stay until they are swept."""
    world.upload("a", FIVE)
    operation = world.operation()
    first, second, last = _chunks(world, 2)
    store_keys(world.database, operation, first)
    store_keys(world.database, operation, second)
    request = _last(world, operation, last)
    world.upload("a", FIVE)
    with world.unchanged(FailedPrecondition, match="replaced"):
        world.finish(request)


def test_a_repeated_last_call(world: World) -> None:
    """The last call of a long copy can be repeated like any Finish."""
    world.upload("a", FIVE)
    operation = world.operation()
    first, second, last = _chunks(world, 2)
    store_keys(world.database, operation, first)
    store_keys(world.database, operation, second)
    request = _last(world, operation, last)
    copy = world.finish(request)
    assert world.finish(request) == copy
    assert store_keys(world.database, operation, first).finished
    assert world.table("operation_keys") == []


def test_a_long_move(world: World) -> None:
    """Moves take their keys in chunks, too."""
    source = world.upload("a", FIVE)
    body = world.download(world.at("a"))
    operation = world.operation()
    *early, last = _chunks(world, 2)
    for chunk in early:
        store_keys(world.database, operation, chunk)
    moved = world.move(world.at("a"), world.at("b"), operation=operation, keys=last)
    assert moved.stream_id == source.stream_id
    assert world.download(world.at("b")) == body
    stored = sorted((row[1], row[7]) for row in world.table("segments"))
    sent = b"".join(chunk.keys for chunk in (*early, last))
    assert [key for _, key in stored] == [sent[at : at + 48] for at in range(0, len(sent), 48)]


def _grow(world: World, count: int) -> None:
    """Make an object of ``count`` segments by putting rows in beside its first one."""
    pending = world.begin(world.at("a"))
    world.segment(pending, Position(0, 0), REMOTE, b"x" * 100)
    (row,) = (row for row in world.table("segments") if row[0] == pending.stream_id)
    names = [column.name for column in segments.columns]
    rows = [
        {**dict(zip(names, row, strict=True)), "position": number, "root_piece_id": os.urandom(32)}
        for number in range(1, count)
    ]
    with world.database.engine.begin() as connection:
        connection.execute(insert(segments), rows)
    commit_object(world.database, CommitObject(world.at("a"), pending.stream_id))


def test_10_000_and_10_001_segments(world: World) -> None:
    """10,000 keys pass in one call; 10,001 need a second one and then pass, too."""
    _grow(world, MAX_KEYS_PER_CALL)
    request = world.finishing(world.at("a"), world.at("b"))
    assert len(request.keys) == MAX_KEYS_PER_CALL
    assert world.finish(request).segment_count == MAX_KEYS_PER_CALL
    _grow(world, MAX_KEYS_PER_CALL + 1)
    first = begin_copy(world.database, BeginCopy(world.at("a"), world.at("c")))
    assert first.more
    assert len(first.keys) == MAX_KEYS_PER_CALL
    fresh = [SegmentKey(key.position, b"n" * 12, b"k" * 48) for key in first.keys]
    with pytest.raises(InvalidInput, match="10001 segment keys in one call, the limit is 10000"):
        PackedKeys.of([*fresh, SegmentKey(MAX_KEYS_PER_CALL, b"n" * 12, b"k" * 48)])
    operation = world.operation()
    store_keys(world.database, operation, PackedKeys.of(fresh))
    last = PackedKeys.of([SegmentKey(MAX_KEYS_PER_CALL, b"n" * 12, b"k" * 48)])
    done = world.finish(
        FinishCopy(
            operation, world.at("a"), first.source.stream_id, world.at("c"), last, NO_METADATA
        )
    )
    assert done.segment_count == MAX_KEYS_PER_CALL + 1
