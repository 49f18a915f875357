"""The short way of a copy writes what the long way writes, or nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import text

from calque.errors import ResourceExhausted
from calque.store.metabase.accounts.projects import set_limits
from calque.store.metabase.copies import finish_copy
from calque.store.metabase.copies.copy_at_once import copy_at_once, copy_in_transaction
from calque.store.metabase.copies.finish_copy import FinishCopy
from calque.store.metabase.engine.locks import key_hash
from calque.store.metabase.engine.statement import POSTGRES
from calque.store.metabase.model.conditions import Conditions
from calque.store.metabase.model.packed_keys import PackedKeys
from calque.store.metabase.model.records import (
    NO_METADATA,
    ObjectRecord,
    SegmentKey,
    WrappedMetadata,
)
from tests.store.world import (
    EMPTY,
    HOUR_US,
    INLINE,
    MAX_COPIES,
    ONE_INLINE,
    ONE_REMOTE,
    REMOTE,
    THREE_REMOTE,
    WITH_TAIL,
    Layout,
    World,
)

TWO_PARTS = Layout([((7, 0), REMOTE), ((2, 3), INLINE)])


def _short(world: World, request: FinishCopy) -> ObjectRecord | None:
    if world.database.dialect == POSTGRES:
        return copy_at_once(world.database, request)
    return world.database.write(lambda transaction: copy_in_transaction(transaction, request))


def _written(world: World, copy: ObjectRecord) -> dict[str, Any]:
    """What lies in the database of ``copy``, without what differs from copy to copy."""
    rows = world.rows()
    segments = [row for row in rows["segments"] if row[0] == copy.stream_id]
    operations = [row for row in rows["operations"] if row[3] == copy.stream_id]
    return {
        "object": copy._replace(object_key=b"", stream_id=b"", created_at=0),
        "stored": [tuple(copy) in rows["objects"]],
        "segments": [(row[1], *row[3:6], len(row[6]), len(row[7]), *row[8:]) for row in segments],
        "ancestor": world.ancestors().get(copy.stream_id),
        "operation": [row[2] for row in operations],
    }


@pytest.mark.parametrize("metadata", ["none", "kept", "replaced"])
@pytest.mark.parametrize("layout", [EMPTY, ONE_INLINE, ONE_REMOTE, WITH_TAIL, TWO_PARTS])
def test_short_and_long_way_alike(world: World, layout: Layout, metadata: str) -> None:
    """Object, segments, reference, operation and charge are those of the long way."""
    had = NO_METADATA if metadata == "none" else world.wrapped_metadata()
    source = world.upload("a", layout, metadata=had, expires_at=world.clock() + HOUR_US)
    changes: dict[str, Any] = {}
    if metadata == "replaced":
        changes = {"override_metadata": True, "metadata": world.wrapped_metadata(b"new")}
    before = world.usage()
    short = _short(world, world.finishing(world.at("a"), world.at("b", "second"), **changes))
    after = world.usage()
    # A condition that holds makes the long way necessary.
    met = Conditions(source_if_match=source.stream_id)
    long = world.copy(world.at("a"), world.at("c", "second"), conditions=met, **changes)
    assert short is not None
    written = _written(world, short)
    given, kept = written["object"], _written(world, long)["object"]
    if metadata == "kept":  # each copy has its own wrapped key
        assert (given.encrypted_metadata, kept.encrypted_metadata) == (b"metadata", b"metadata")
        blank = {"encrypted_metadata_nonce": b"", "encrypted_metadata_encrypted_key": b""}
        given, kept = given._replace(**blank), kept._replace(**blank)
    assert {**written, "object": given} == {**_written(world, long), "object": kept}
    charged = [now - then for now, then in zip(after, before, strict=True)]
    again = [now - then for now, then in zip(world.usage(), after, strict=True)]
    assert charged == again
    assert world.download(world.at("b", "second")) == world.download(world.at("a"))


def test_keys_follow_their_positions(world: World) -> None:
    """Of two segments each has the key that was wrapped for its position."""
    world.upload("a", TWO_PARTS)
    request = world.finishing(world.at("a"), world.at("b"))
    short = _short(world, request)
    assert short is not None
    stored = {row[1]: row[6:8] for row in world.table("segments") if row[0] == short.stream_id}
    keys = request.keys
    first, last = keys.positions
    assert stored == {
        first: (keys.nonces[:12], keys.keys[:48]),
        last: (keys.nonces[12:], keys.keys[48:]),
    }


def _moved_by_one(keys: PackedKeys) -> PackedKeys:
    return PackedKeys.of([SegmentKey(p + 1, b"n" * 12, b"k" * 48) for p in keys.positions])


def _taken(world: World) -> FinishCopy:
    world.upload("b")
    return world.finishing(world.at("a"), world.at("b"))


def _of_a_copy(world: World) -> FinishCopy:
    world.copy(world.at("a"), world.at("copy"))
    return world.finishing(world.at("copy"), world.at("b"))


def _source_gone(world: World) -> FinishCopy:
    request = world.finishing(world.at("a"), world.at("b"))
    world.delete(world.at("a"))
    return request


def _source_replaced(world: World) -> FinishCopy:
    request = world.finishing(world.at("a"), world.at("b"))
    world.upload("a")
    return request


def _source_expired(world: World) -> FinishCopy:
    world.upload("brief", expires_at=world.clock() + HOUR_US)
    request = world.finishing(world.at("brief"), world.at("b"))
    world.clock.advance(2 * HOUR_US)
    return request


def _bucket_gone(world: World) -> FinishCopy:
    request = world.finishing(world.at("a"), world.at("b", "second"))
    world.delete_bucket("second")
    return request


def _other_placement(world: World) -> FinishCopy:
    world.bucket("elsewhere", placement=7)
    return world.finishing(world.at("a"), world.at("b", "elsewhere"))


def _other_positions(world: World) -> FinishCopy:
    request = world.finishing(world.at("a"), world.at("b"))
    return replace(request, keys=_moved_by_one(request.keys))


def _too_few_keys(world: World) -> FinishCopy:
    return replace(world.finishing(world.at("a"), world.at("b")), keys=PackedKeys())


def _metadata_key_for_none(world: World) -> FinishCopy:
    key = WrappedMetadata(os.urandom(12), None, os.urandom(48))
    return world.finishing(world.at("a"), world.at("b"), metadata=key)


def _finished_before(world: World) -> FinishCopy:
    request = world.finishing(world.at("a"), world.at("b"))
    world.finish(request)
    world.delete(world.at("b"))
    return request


def _many_keys(world: World) -> FinishCopy:
    world.upload("three", THREE_REMOTE)
    return world.finishing(world.at("three"), world.at("b"))


def _late(world: World) -> FinishCopy:
    request = world.finishing(world.at("a"), world.at("b"))
    world.clock.advance(25 * HOUR_US)
    return request


def _full_family(world: World) -> FinishCopy:
    for number in range(MAX_COPIES):
        world.copy(world.at("a"), world.at(f"copy{number}"))
    return world.finishing(world.at("a"), world.at("b"))


UNUSUAL = [
    _taken,
    _of_a_copy,
    _source_gone,
    _source_replaced,
    _source_expired,
    _bucket_gone,
    _other_placement,
    _other_positions,
    _too_few_keys,
    _metadata_key_for_none,
    _finished_before,
    _many_keys,
    _late,
    _full_family,
]


@pytest.mark.parametrize("prepare", UNUSUAL)
def test_unusual_copies_write_nothing(world: World, prepare: Callable[[World], FinishCopy]) -> None:
    """Whatever is not as usual is left to the long way, with every row as it was."""
    world.upload("a")
    request = prepare(world)
    before = world.rows()
    assert _short(world, request) is None
    assert world.rows() == before


def test_full_quota_writes_nothing(world: World) -> None:
    """A copy beyond the project's limit is refused and changes no row on either way."""
    world.upload("a")
    used = world.usage()[0]
    set_limits(world.database, world.project_id, limit_bytes=used, limit_segments=None)
    request = world.finishing(world.at("a"), world.at("b"))
    with world.unchanged(ResourceExhausted):
        world.finish(request)


def test_usual_copies_go_the_short_way(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finish of a small copy never looks at both ends first."""
    world.upload("a")

    def forbidden(*_: object) -> None:
        raise AssertionError("the long way")

    monkeypatch.setattr(finish_copy, "_look", forbidden)
    world.copy(world.at("a"), world.at("b"))
    assert world.download(world.at("b")) == world.download(world.at("a"))


LOCK_KEY = "SELECT pg_advisory_xact_lock(:key)"
LOCK_BUCKET = "SELECT 1 FROM buckets WHERE name = 'second' FOR UPDATE NOWAIT"
LOCK_FAMILY = "SELECT 1 FROM objects WHERE stream_id = :stream FOR UPDATE NOWAIT"
WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted"


@pytest.mark.parametrize(("held", "free"), [(LOCK_KEY, [LOCK_BUCKET]), (LOCK_BUCKET, [])])
def test_locks_are_taken_in_the_one_order(world: World, held: str, free: list[str]) -> None:
    """Who waits for a key holds no bucket and no family yet; who waits for a bucket no family."""
    if world.database.dialect != POSTGRES:
        pytest.skip("SQLite gives a writer the whole database")
    source = world.upload("a")
    target = world.at("b", "second")
    request = world.finishing(world.at("a"), target)
    values = {"key": key_hash(target), "stream": source.stream_id}
    engine = world.database.engine
    with ThreadPoolExecutor(1) as pool, engine.connect() as holder:
        holder.execute(text(held), values)
        copying = pool.submit(world.finish, request)
        deadline = time.monotonic() + 30
        while holder.execute(text(WAITING)).scalar() == 0:
            assert time.monotonic() < deadline
        for lock in [*free, LOCK_FAMILY]:
            with engine.connect() as other:
                other.execute(text(lock), values)
        holder.rollback()
        assert copying.result(30).location == target
