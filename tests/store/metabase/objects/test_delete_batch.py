"""Expired objects and abandoned uploads."""

from __future__ import annotations

import pytest

from calque.errors import InvalidInput
from calque.store.metabase.model.records import Position
from calque.store.metabase.objects.delete_batch import (
    BatchResult,
    delete_expired,
    delete_zombies,
)
from tests.store.world import HOUR_US, REMOTE, THREE_REMOTE, World

DAY_US = 24 * HOUR_US


def _sweep(world: World, results: list[BatchResult]) -> int:
    for result in results:
        world.free(result.freed)
    return sum(result.deleted for result in results)


@pytest.mark.parametrize("batch", [1, 2, 100])
def test_expired_originals_copies_and_references_go(world: World, batch: int) -> None:
    """Originals, copies and reference rows go; pieces are reported once; the rest stays."""
    end = world.clock() + HOUR_US
    world.upload("a", THREE_REMOTE, expires_at=end)
    for key in ("b", "c"):
        world.copy(world.at("a"), world.at(key, "second"))
    held = sorted(world.stored)
    world.upload("stays")
    assert _sweep(world, list(delete_expired(world.database, batch=batch))) == 0
    world.clock.advance(2 * HOUR_US)
    assert _sweep(world, list(delete_expired(world.database, batch=batch))) == 3
    assert sorted(world.freed) == held
    assert [row[2] for row in world.table("objects")] == [b"stays"]
    assert world.ancestors() == {}


def test_expired_uploads_go_too(world: World) -> None:
    """A pending upload with an expiry in the past goes with its pieces."""
    pending = world.begin(world.at("a"), expires_at=world.clock() + HOUR_US)
    world.segment(pending, Position(0, 0), REMOTE, b"x")
    world.clock.advance(2 * HOUR_US)
    assert _sweep(world, list(delete_expired(world.database))) == 1
    assert world.empty()


def test_zombies(world: World) -> None:
    """Uploads past their deadline go; committed objects and busy uploads never do."""
    world.upload("committed")
    abandoned = world.begin(world.at("zombie"))
    world.segment(abandoned, Position(0, 0), REMOTE, b"x")
    busy = world.begin(world.at("busy"))
    kept = set(world.stored)
    world.clock.advance(DAY_US + HOUR_US)
    world.segment(busy, Position(0, 0), REMOTE, b"y")
    fresh = world.begin(world.at("fresh"))
    assert _sweep(world, list(delete_zombies(world.database, idle_us=DAY_US, batch=1))) == 1
    assert {row[4] for row in world.table("objects")} >= {busy.stream_id, fresh.stream_id}
    assert all(row[4] != abandoned.stream_id for row in world.table("objects"))
    assert len(world.freed) == 1
    assert world.freed[0] in kept
    assert world.download(world.at("committed"))


def test_batches_have_bounds(world: World) -> None:
    """A batch of nothing, or of everything, is refused."""
    with pytest.raises(InvalidInput):
        list(delete_expired(world.database, batch=0))
    with pytest.raises(InvalidInput):
        list(delete_zombies(world.database, idle_us=1, batch=100_000))
