"""Conditions are checked in the commit: of many writers that hold the same one, one wins."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from calque.errors import AlreadyExists, ConditionNotMatch
from tests.store_client.world import BUCKET, OTHER, SEGMENT, World

WRITERS = 16
Write = Callable[[World, int, dict[str, object]], object]


@pytest.fixture
def shared(any_database: str | None, make_world: Callable[..., World]) -> World:
    """A store on either database."""
    return make_world(database=any_database)


def _body(number: int) -> bytes:
    return bytes([number]) * (SEGMENT + number)


def _upload(world: World, number: int, condition: dict[str, object]) -> object:
    return world.project.upload(BUCKET, "k", _body(number), **condition)  # type: ignore[arg-type]


def _small_upload(world: World, number: int, condition: dict[str, object]) -> object:
    return world.project.upload(BUCKET, "k", bytes([number]), **condition)  # type: ignore[arg-type]


def _multipart(world: World, number: int, condition: dict[str, object]) -> object:
    upload = world.project.begin_multipart(BUCKET, "k")
    try:
        upload.upload_part(1, _body(number))
        return upload.commit(**condition)  # type: ignore[arg-type]
    except BaseException:
        upload.abort()
        raise


def _copy(world: World, number: int, condition: dict[str, object]) -> object:
    world.project.upload(OTHER, f"s{number}", _body(number))
    return world.project.copy_object(OTHER, f"s{number}", BUCKET, "k", **condition)  # type: ignore[arg-type]


def _race(world: World, write: Write, condition: dict[str, object]) -> list[int]:
    """The numbers of those who won; the others were refused by the condition."""
    barrier = threading.Barrier(WRITERS)

    def run(number: int) -> bool:
        barrier.wait(60)
        try:
            write(world, number, condition)
        except (AlreadyExists, ConditionNotMatch):
            return False
        return True

    with ThreadPoolExecutor(WRITERS) as pool:
        won = list(pool.map(run, range(WRITERS)))
    return [number for number, has in enumerate(won) if has]


WRITES = pytest.mark.parametrize(
    "write", [_upload, _small_upload, _multipart, _copy], ids=lambda each: each.__name__
)


@WRITES
def test_one_of_many_creates(shared: World, write: Write) -> None:
    """16 writers that want nothing to be there: one writes, fifteen are told, nothing is left."""
    (winner,) = _race(shared, write, {"if_not_exists": True})
    content = shared.project.download(BUCKET, "k").read()
    assert content == (bytes([winner]) if write is _small_upload else _body(winner))
    assert list(shared.project.list_pending(BUCKET)) == []


@WRITES
def test_one_of_many_replaces(shared: World, write: Write) -> None:
    """16 writers that name the same predecessor: one replaces it."""
    before = shared.project.upload(BUCKET, "k", os.urandom(SEGMENT))
    assert len(_race(shared, write, {"if_match": before.etag})) == 1


def test_one_of_many_deletes(shared: World) -> None:
    """16 deletes that name what is there: one deletes it, and not what comes after it."""
    before = shared.project.upload(BUCKET, "k", os.urandom(SEGMENT))

    def delete(world: World, _: int, condition: dict[str, object]) -> object:
        return world.project.delete_object(BUCKET, "k", **condition)  # type: ignore[arg-type]

    assert len(_race(shared, delete, {"if_match": before.etag})) == 1
    shared.project.upload(BUCKET, "k", b"new")
    with pytest.raises(ConditionNotMatch):
        shared.project.delete_object(BUCKET, "k", if_match=before.etag)
    assert shared.project.download(BUCKET, "k").read() == b"new"
