"""Calls on one upload that meet each other."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

import pytest

from calque.errors import CalqueError, NotFound
from tests.store.world import in_parallel
from tests.store_client.world import BUCKET, SEGMENT, World


@pytest.fixture
def any_world(any_database: str | None, make_world: Callable[..., World]) -> World:
    """A store on either database."""
    return make_world(database=any_database)


def test_the_same_part_from_several_threads(any_world: World) -> None:
    """Each upload of the part succeeds; the object is one of them, whole, and no piece is left."""
    project = any_world.project
    for size in (10, 2 * SEGMENT + 7):
        bodies = [os.urandom(size) for _ in range(6)]
        upload = project.begin_multipart(BUCKET, "k")
        results = in_parallel([partial(upload.upload_part, 1, body) for body in bodies])
        assert [each for each in results if isinstance(each, BaseException)] == []
        upload.commit()
        assert project.download(BUCKET, "k").read() in bodies
    assert any_world.store.endpoint.list_waiting_pieces() == []


def test_an_abort_that_races_a_commit(any_world: World) -> None:
    """Either the object is there and whole, or nothing is and the commit says so."""
    project = any_world.project
    for turn in range(10):
        body = os.urandom(SEGMENT + 1)
        upload = project.begin_multipart(BUCKET, f"k{turn}")
        upload.upload_part(1, body)
        committed, aborted = in_parallel([upload.commit, upload.abort], threads=2)
        assert aborted is None or isinstance(aborted, CalqueError)
        if isinstance(committed, BaseException):
            assert isinstance(committed, NotFound)
            with pytest.raises(NotFound):
                project.stat(BUCKET, f"k{turn}")
        else:
            assert project.download(BUCKET, f"k{turn}").read() == body
    assert any_world.store.endpoint.list_waiting_pieces() == []
