"""Objects of one segment that meet other calls: on each database no byte is lost, no piece left."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from calque import faults
from calque.errors import (
    AlreadyExists,
    CalqueError,
    ConditionNotMatch,
    FailedPrecondition,
    NotFound,
    ResourceExhausted,
)
from calque.store.upkeep.gc import GcOptions, collect_store
from tests.store.world import in_parallel
from tests.store_client.conftest import TWO_OF_FOUR
from tests.store_client.world import BUCKET, OTHER, SEGMENT, World


@pytest.fixture
def any_world(any_database: str | None, make_world: Callable[..., World]) -> World:
    """A store of four nodes on either database; at the end each piece must have its row."""
    return make_world(TWO_OF_FOUR, any_database)


def errors_of(results: list[Any]) -> list[type[BaseException]]:
    return [type(each) for each in results if isinstance(each, BaseException)]


def test_puts_to_one_key(any_world: World) -> None:
    """All succeed, one after the other; the object is whole and those before it left nothing."""
    project = any_world.project
    bodies = [os.urandom(SEGMENT) for _ in range(12)]
    made: list[Any] = in_parallel([partial(project.upload, BUCKET, "k", body) for body in bodies])
    assert errors_of(made) == []
    assert len({each.version for each in made}) == len(bodies)
    assert project.download(BUCKET, "k").read() == bodies[made.index(project.stat(BUCKET, "k"))]
    assert not list(project.list_pending(BUCKET))
    assert any_world.piece_count() == 4


@pytest.mark.parametrize("condition", ["if_not_exists", "if_match"])
def test_one_put_meets_its_condition(any_world: World, condition: str) -> None:
    """Of many under one condition one succeeds, and the pieces of the others are gone."""
    project = any_world.project
    more: dict[str, Any] = {"if_not_exists": True}
    if condition == "if_match":
        more = {"if_match": project.upload(BUCKET, "k", os.urandom(SEGMENT)).etag}
    bodies = [os.urandom(SEGMENT) for _ in range(8)]
    made = in_parallel([partial(project.upload, BUCKET, "k", body, **more) for body in bodies])
    refused = AlreadyExists if condition == "if_not_exists" else ConditionNotMatch
    assert errors_of(made) == [refused] * 7
    (winner,) = (n for n, each in enumerate(made) if not isinstance(each, BaseException))
    assert project.download(BUCKET, "k").read() == bodies[winner]
    assert any_world.piece_count() == 4


def test_puts_among_deletes_copies_and_moves(any_world: World) -> None:
    """Whatever is there in the end has the bytes of one put."""
    project = any_world.project
    bodies = [os.urandom(SEGMENT) for _ in range(12)]
    for body in bodies:
        project.upload(BUCKET, "k", body)
        others: list[Callable[[], Any]] = [
            partial(project.upload, BUCKET, "k", body),
            partial(project.upload, OTHER, "moved", body),
            partial(project.delete_object, BUCKET, "k"),
            partial(project.copy_object, BUCKET, "k", OTHER, "copy"),
            partial(project.move_object, BUCKET, "k", OTHER, "moved"),
        ]
        expected = (NotFound, FailedPrecondition)
        assert all(issubclass(each, expected) for each in errors_of(in_parallel(others)))
    for bucket in (BUCKET, OTHER):
        for entry in project.list_objects(bucket):
            assert project.download(bucket, entry.key).read() in bodies
    assert any_world.store.endpoint.list_waiting_pieces() == []


def test_puts_into_a_bucket_that_goes(any_world: World) -> None:
    """Each is deleted with its bucket, or told that there is none; no piece stays."""
    project = any_world.project
    for turn in range(4):
        project.create_bucket(f"going{turn}")
        puts = [
            partial(project.upload, f"going{turn}", f"k{n}", os.urandom(SEGMENT)) for n in range(6)
        ]
        gone = partial(project.delete_bucket, f"going{turn}", with_objects=True)
        made = in_parallel([*puts, gone])
        assert all(each is NotFound for each in errors_of(made[:-1]))
        if isinstance(made[-1], BaseException):
            assert isinstance(made[-1], CalqueError)
            project.delete_bucket(f"going{turn}", with_objects=True)
    assert any_world.piece_count() == 0


def test_puts_beyond_a_quota(any_world: World) -> None:
    """As many as fit succeed; what was refused has left no piece; a lowered limit stays lowered."""
    project, admin = any_world.project, any_world.store.endpoint.admin
    project_id = project.session.limits.project_id
    admin.set_limits(project_id, limit_bytes=None, limit_segments=3)
    puts = [partial(project.upload, BUCKET, f"k{n}", os.urandom(SEGMENT)) for n in range(8)]
    assert errors_of(in_parallel(puts)) == [ResourceExhausted] * 5
    assert any_world.piece_count() == 3 * 4
    lower = partial(admin.set_limits, project_id, limit_bytes=None, limit_segments=2)
    in_parallel([*puts, lower])
    assert len(any_world.keys()) == 3
    project.delete_object(BUCKET, any_world.keys()[0])
    with pytest.raises(ResourceExhausted):
        project.upload(BUCKET, "more", os.urandom(SEGMENT))


def test_killed_behind_its_pieces(any_world: World) -> None:
    """Pieces without their transaction are found, and go once they are older than an upload."""
    project = any_world.project
    kept = os.urandom(SEGMENT)
    project.upload(BUCKET, "k", kept)
    faults.arm("upload.pieces:error")
    try:
        with pytest.raises(faults.InjectedFault):
            project.upload(BUCKET, "k", os.urandom(SEGMENT))
    finally:
        faults.arm("")
    assert any_world.piece_count() == 2 * 4
    assert not list(project.list_pending(BUCKET))
    any_world.clock.ahead = timedelta(days=4)
    collect_store(any_world.store, GcOptions(many=True))
    assert any_world.piece_count() == 4
    assert project.download(BUCKET, "k").read() == kept
