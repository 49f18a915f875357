"""Expired objects and abandoned uploads."""

from __future__ import annotations

import pytest

from calque.errors import InvalidInput
from calque.store.metabase.model.records import Position
from calque.store.metabase.objects import delete_batch
from calque.store.metabase.objects.delete_batch import (
    BatchResult,
    BucketDeleted,
    DeleteBucket,
    delete_bucket,
    delete_expired,
    delete_zombies,
)
from tests.store.world import HOUR_US, REMOTE, THREE_REMOTE, Layout, World

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


def test_a_batch_holds_few_segments(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large objects and uploads go in smaller batches: it is segments that keep others waiting."""
    monkeypatch.setattr(delete_batch, "MAX_SEGMENTS", 6)
    end = world.clock() + HOUR_US
    for number in range(5):
        world.upload(f"small {number}", THREE_REMOTE, expires_at=end)
    world.upload("alone too large", Layout.of(*[REMOTE] * 8), expires_at=end)
    for number in range(3):
        pending = world.begin(world.at(f"upload {number}"), expires_at=end)
        for part in range(5):
            world.segment(pending, Position(0, part), REMOTE, b"x")
    world.clock.advance(2 * HOUR_US)
    results = list(delete_expired(world.database))
    assert all(len(each.freed) <= 6 or each.deleted == 1 for each in results)
    assert any(each.deleted > 1 for each in results)
    assert _sweep(world, results) == 9
    assert world.empty()


def test_a_bucket_of_many_uploads_goes_in_batches(world: World) -> None:
    """What was never committed goes as objects do, a batch at a time, before the bucket."""
    for number in range(7):
        pending = world.begin(world.at(f"upload {number}", "second"))
        world.segment(pending, Position(0, 0), REMOTE, b"x")
    request = DeleteBucket(world.project_id, "second", everything=True, batch=3)
    *batches, last = delete_bucket(world.database, request)
    assert [each.deleted for each in batches if isinstance(each, BatchResult)] == [3, 3, 1]
    assert isinstance(last, BucketDeleted)
    assert last.along.deleted == 0
