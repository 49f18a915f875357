"""Many at once: no error, no deadlock, and what survives can be read."""

from __future__ import annotations

import random

import pytest

from calque.errors import AlreadyExists, FailedPrecondition, NotFound, ResourceExhausted
from calque.store.metabase.accounts.projects import set_limits
from calque.store.metabase.model.conditions import Conditions
from tests.store.world import MAX_COPIES, THREE_REMOTE, World, in_parallel

pytestmark = pytest.mark.usefixtures("no_deadlock")


def _errors(results: list[object]) -> list[BaseException]:
    return [result for result in results if isinstance(result, BaseException)]


def test_parallel_delete_of_originals_and_copies(world: World) -> None:
    """50 originals and their 50 copies, all at once."""
    for number in range(50):
        world.upload(f"a{number}")
        world.copy(world.at(f"a{number}"), world.at(f"b{number}", "second"))
    places = [world.at(f"a{number}") for number in range(50)]
    places += [world.at(f"b{number}", "second") for number in range(50)]
    random.Random(50).shuffle(places)
    assert _errors(in_parallel([lambda at=at: world.delete(at) for at in places])) == []  # type: ignore[misc]
    assert world.empty()


def test_parallel_delete_of_one_family(world: World) -> None:
    """One original and its 50 copies, all at once: the tables are empty."""
    world.upload("original", THREE_REMOTE)
    held = sorted(world.stored)
    for number in range(50):
        world.copy(world.at("original"), world.at(f"copy{number}"))
    places = [world.at("original"), *(world.at(f"copy{number}") for number in range(50))]
    random.Random(50).shuffle(places)
    assert _errors(in_parallel([lambda at=at: world.delete(at) for at in places])) == []  # type: ignore[misc]
    assert sorted(world.freed) == held
    assert world.empty()


def test_parallel_copy_and_delete_of_one_source(world: World) -> None:
    """Many rounds: a copy passes or says that its source went; every survivor downloads."""
    for round_ in range(10):
        world.upload("a", THREE_REMOTE)
        body = world.download(world.at("a"))
        copies = [
            lambda key=f"{round_}-{number}": world.copy(world.at("a"), world.at(key))  # type: ignore[misc]
            for number in range(4)
        ]
        results = in_parallel([*copies[:2], lambda: world.delete(world.at("a")), *copies[2:]])
        for error in _errors(results):
            assert isinstance(error, FailedPrecondition | NotFound)
        for number, result in zip((0, 1, 2, 3), results[:2] + results[3:], strict=True):
            if not isinstance(result, BaseException):
                assert world.download(world.at(f"{round_}-{number}")) == body


def test_parallel_copies_onto_one_key(world: World) -> None:
    """With if_not_exists exactly one wins; without it the last does, and only one remains."""
    for number in range(8):
        world.upload(f"a{number}")
    places = [world.at(f"a{number}") for number in range(8)]
    only_new = Conditions(if_not_exists=True)
    results = in_parallel(
        [lambda at=at: world.copy(at, world.at("b"), conditions=only_new) for at in places]  # type: ignore[misc]
    )
    errors = _errors(results)
    assert len(errors) == 7
    assert all(isinstance(error, AlreadyExists) for error in errors)
    results = in_parallel([lambda at=at: world.copy(at, world.at("b")) for at in places])  # type: ignore[misc]
    assert _errors(results) == []
    assert sum(row[2] == b"b" for row in world.table("objects")) == 1
    assert len(world.ancestors()) == 1


def test_parallel_finish_of_one_operation(world: World) -> None:
    """A Finish sent eight times at once makes one object and gives it eight times."""
    world.upload("a", THREE_REMOTE)
    request = world.finishing(world.at("a"), world.at("b"))
    results = in_parallel([lambda: world.finish(request)] * 8)
    assert _errors(results) == []
    assert len({result.stream_id for result in results}) == 1  # type: ignore[union-attr]
    assert len(world.table("objects")) == 2


def test_parallel_copies_stop_at_the_limit(world: World) -> None:
    """However they race, an ancestor never has more than 100 copies."""
    world.upload("a")
    for number in range(MAX_COPIES - 3):
        world.copy(world.at("a"), world.at(f"c{number}"))
    results = in_parallel(
        [lambda n=number: world.copy(world.at("a"), world.at(f"d{n}")) for number in range(8)]  # type: ignore[misc]
    )
    errors = _errors(results)
    assert len(errors) == 5
    assert all(isinstance(error, ResourceExhausted) for error in errors)
    assert len(world.ancestors()) == MAX_COPIES


def test_moves_against_each_other(world: World) -> None:
    """Two objects that swap names at once: no deadlock, no object lost that was not replaced."""
    for _ in range(5):
        world.upload("a")
        world.upload("b")
        results = in_parallel(
            [
                lambda: world.move(world.at("a"), world.at("b")),
                lambda: world.move(world.at("b"), world.at("a")),
            ]
        )
        for error in _errors(results):
            assert isinstance(error, FailedPrecondition | NotFound)
        assert len(world.table("objects")) == 1
        world.delete_bucket("first")
        world.bucket("first")


def test_bucket_delete_against_copies(world: World) -> None:
    """Copies into a bucket that is being deleted pass or are told; nothing dangles."""
    for _ in range(3):
        world.upload("a", THREE_REMOTE)
        copies = [
            lambda n=number: world.copy(world.at("a"), world.at(f"c{n}", "second"))  # type: ignore[misc]
            for number in range(6)
        ]
        results = in_parallel([*copies[:3], lambda: world.delete_bucket("second", 2), *copies[3:]])
        for error in _errors(results):
            assert isinstance(error, NotFound)
        if not any(row[1] == "second" for row in world.table("buckets")):
            world.bucket("second")


def test_quota_under_concurrency(world: World) -> None:
    """Copies that race for the last bytes of a quota never take more than there are."""
    limit = 5
    source = world.upload("a")
    size = source.total_encrypted_size
    set_limits(world.database, world.project_id, limit_bytes=size * limit, limit_segments=None)
    results = in_parallel(
        [lambda n=number: world.copy(world.at("a"), world.at(f"c{n}")) for number in range(12)]  # type: ignore[misc]
    )
    errors = _errors(results)
    assert all(isinstance(error, ResourceExhausted) for error in errors)
    assert len(errors) == 12 - (limit - 1)
    assert world.usage()[0] == size * limit
