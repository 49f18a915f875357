"""Many keys in one transaction, each with an answer of its own."""

from __future__ import annotations

import pytest

from calque.errors import ConditionNotMatch, InvalidInput, NotFound
from calque.store.metabase.objects.delete_object import DeleteObject
from calque.store.metabase.objects.delete_objects import DeleteObjects, delete_objects
from tests.store.world import THREE_REMOTE, WITH_TAIL, World, in_parallel


def _delete(world: World, *keys: str) -> list[object]:
    asked = DeleteObjects(tuple(DeleteObject(world.at(key)) for key in keys))
    done = delete_objects(world.database, asked)
    world.free(done.freed)
    return list(done.answers)


def test_originals_and_copies_go_together(world: World) -> None:
    """Whatever their order, pieces go once with their last holder; a copy that stays has them."""
    world.upload("a", THREE_REMOTE)
    world.upload("b", WITH_TAIL)
    for number in range(3):
        world.copy(world.at("a"), world.at(f"a{number}"))
    body = world.download(world.at("a"))
    assert _delete(world, "a1", "a", "missing", "b", "b") == [True, True, False, True, False]
    assert world.download(world.at("a0")) == body
    assert _delete(world, "a0", "a2") == [True, True]
    assert world.empty()


def test_a_condition_keeps_its_own_key(world: World) -> None:
    """One stale condition is told, and the other keys go."""
    kept, gone = world.upload("kept"), world.upload("gone")
    asked = (
        DeleteObject(world.at("kept"), gone.stream_id),
        DeleteObject(world.at("gone"), gone.stream_id),
        DeleteObject(world.at("missing"), gone.stream_id),
    )
    first, second, third = delete_objects(world.database, DeleteObjects(asked)).answers
    assert isinstance(first, ConditionNotMatch)
    assert second is True
    assert isinstance(third, ConditionNotMatch)
    assert world.delete(world.at("kept")) == kept


def test_what_cannot_be_asked(world: World) -> None:
    """No key, too many, two buckets, a bucket that is not there."""
    with world.unchanged(InvalidInput):
        DeleteObjects(())
    with world.unchanged(InvalidInput):
        DeleteObjects(tuple(DeleteObject(world.at(f"{n}")) for n in range(1001)))
    with world.unchanged(InvalidInput, match="one bucket"):
        DeleteObjects((DeleteObject(world.at("a")), DeleteObject(world.at("a", "second"))))
    with world.unchanged(NotFound, match="'nowhere'"):
        delete_objects(world.database, DeleteObjects((DeleteObject(world.at("a", "nowhere")),)))


def test_batches_that_meet(world: World) -> None:
    """Overlapping batches at once: every object goes once, and nobody waits for ever."""
    keys = [f"k{number}" for number in range(20)]
    for key in keys:
        world.upload(key)
        world.copy(world.at(key), world.at(f"{key}-copy"))
    both = [*keys, *(f"{key}-copy" for key in keys)]
    orders = [both, both[::-1], both[::2] + both[1::2], both[20:] + both[:20]]
    results = in_parallel([lambda o=order: _delete(world, *o) for order in orders])
    assert all(isinstance(each, list) for each in results), results
    assert sum(each.count(True) for each in results) == len(both)
    assert world.empty()


@pytest.mark.parametrize("count", [1, 1000])
def test_up_to_a_thousand(world: World, count: int) -> None:
    """The largest batch passes."""
    world.upload("k0")
    assert _delete(world, *(f"k{n}" for n in range(count)))[0] is True
