"""Many at once: no error, no deadlock, and every survivor downloads."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from calque.errors import ConditionNotMatch, NotFound
from tests.store_client.conftest import TWO_OF_FOUR
from tests.store_client.world import BUCKET, OTHER, SEGMENT, World


@pytest.fixture
def shared(any_database: str | None, make_world: Callable[..., World]) -> World:
    """A store on either database."""
    return make_world(database=any_database)


def at_once(work: list[Callable[[], object]]) -> list[object]:
    """Run everything at the same moment; errors come out."""
    barrier = threading.Barrier(len(work))

    def run(each: Callable[[], object]) -> object:
        barrier.wait(30)
        return each()

    with ThreadPoolExecutor(len(work)) as pool:
        return list(pool.map(run, work))


def test_originals_and_copies_deleted_together(shared: World) -> None:
    """50 originals and their 50 copies deleted in parallel: no error, nothing is left."""
    project = shared.project
    for number in range(50):
        project.upload(BUCKET, f"o{number}", os.urandom(SEGMENT))
        project.copy_object(BUCKET, f"o{number}", OTHER, f"c{number}")
    keys = [(BUCKET, f"o{n}") for n in range(50)] + [(OTHER, f"c{n}") for n in range(50)]
    random.Random(7).shuffle(keys)
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda place: project.delete_object(*place), keys))
    assert shared.piece_count() == 0


def test_one_original_and_its_copies_deleted_together(shared: World) -> None:
    """One original and 50 copies deleted in parallel: the pieces go exactly once, at the end."""
    project = shared.project
    project.upload(BUCKET, "o", os.urandom(2 * SEGMENT + 5))
    for number in range(50):
        project.copy_object(BUCKET, "o", OTHER, f"c{number}")
    keys = [(BUCKET, "o")] + [(OTHER, f"c{n}") for n in range(50)]
    random.Random(3).shuffle(keys)
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda place: project.delete_object(*place), keys))
    assert shared.piece_count() == 0
    assert shared.keys(OTHER) == []


def test_copy_and_delete_of_one_source(shared: World) -> None:
    """Copies race a delete of their source, many rounds: each survivor has every byte."""
    project, content = shared.project, os.urandom(2 * SEGMENT)
    for number in range(12):
        source = f"s{number}"
        project.upload(BUCKET, source, content)

        def copy(target: str, source: str = source) -> bool:
            try:
                project.copy_object(BUCKET, source, OTHER, target)
            except (NotFound, ConditionNotMatch):
                return False
            return True

        done = at_once(
            [
                lambda n=number: copy(f"a{n}"),  # type: ignore[misc]
                lambda s=source: project.delete_object(BUCKET, s),  # type: ignore[misc]
                lambda n=number: copy(f"b{n}"),  # type: ignore[misc]
            ]
        )
        survivors = [key for key in shared.keys(OTHER) if key[1:] == str(number)]
        assert len(survivors) == done.count(True) - 1
        assert all(project.download(OTHER, key).read() == content for key in survivors)


def test_one_creator_wins(shared: World) -> None:
    """Of many uploads with if_not_exists exactly one wins; the losers' pieces are gone."""
    contents = [os.urandom(SEGMENT) for _ in range(6)]

    def create(content: bytes) -> bool:
        try:
            shared.project.upload(BUCKET, "k", content, if_not_exists=True)
        except Exception:
            return False
        return True

    won = at_once([lambda c=c: create(c) for c in contents])  # type: ignore[misc]
    assert won.count(True) == 1
    assert shared.project.download(BUCKET, "k").read() == contents[won.index(True)]


def test_uploads_to_many_nodes_at_once(make_world: Callable[..., World]) -> None:
    """Eight threads upload, copy and download on four nodes at the same time."""
    world = make_world(TWO_OF_FOUR)

    def life(number: int) -> bool:
        content = os.urandom(SEGMENT + number)
        world.project.upload(BUCKET, f"k{number}", content)
        world.project.copy_object(BUCKET, f"k{number}", OTHER, f"k{number}")
        world.project.delete_object(BUCKET, f"k{number}")
        return world.project.download(OTHER, f"k{number}").read() == content

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(life, range(24)))
