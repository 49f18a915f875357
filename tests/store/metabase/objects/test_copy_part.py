"""Ranges as parts of an upload, while that is committed and its sources go: one order of locks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import closing
from functools import partial

import psycopg
import pytest
from sqlalchemy import make_url

from calque.errors import CalqueError, FailedPrecondition, NotFound
from calque.store.metabase.engine.statement import POSTGRES
from calque.store.metabase.model.records import ObjectRecord
from calque.store.metabase.objects.delete_object import AbortObject, abort_object
from tests.store.world import HOUR_US, ONE_REMOTE, THREE_REMOTE, World, in_parallel

pytestmark = pytest.mark.usefixtures("no_deadlock")
SIZE = 100


def _connect(world: World) -> psycopg.Connection[tuple[int]]:
    url = make_url(world.database.engine.url).set(drivername="postgresql")
    return psycopg.connect(url.render_as_string(hide_password=False))


def _wait_for_waiters(world: World, count: int) -> None:
    """Until so many transactions wait for a lock in this database."""
    with closing(_connect(world)) as looking:
        looking.autocommit = True
        asked = (
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        for _ in range(3000):
            row = looking.execute(asked).fetchone()
            if row is not None and row[0] >= count:
                return
            threading.Event().wait(0.02)
    raise AssertionError("nobody waits")


def _begin_before(world: World, *sources: str) -> tuple[ObjectRecord, list[str]]:
    """An upload, and two sources with higher stream ids than it has, in order."""
    upload = min((world.begin(world.at("target")) for _ in range(8)), key=lambda e: e.stream_id)
    made = {key: world.upload(key, ONE_REMOTE, size=SIZE).stream_id for key in sources}
    higher = sorted((key for key in sources if made[key] > upload.stream_id), key=made.__getitem__)
    return upload, higher[:2]


@pytest.mark.parametrize("ending", ["commit", "abort"])
def test_a_part_and_the_end_of_its_upload_lock_in_one_order(world: World, ending: str) -> None:
    """Both need the upload and its sources, and neither waits for what the other holds."""
    if world.database.dialect != POSTGRES:
        pytest.skip("SQLite has one writer at a time")
    upload, (first, second) = _begin_before(world, *(f"s{n}" for n in range(12)))
    for part, source in enumerate((first, second), 1):
        world.copy_part(upload, part, world.at(source), 0, 30)
    results: dict[str, object] = {}

    def run(name: str, action: Callable[[], object]) -> threading.Thread:
        def work() -> None:
            try:
                results[name] = action()
            except CalqueError as error:
                results[name] = error

        thread = threading.Thread(target=work)
        thread.start()
        return thread

    def end() -> object:
        if ending == "commit":
            return world.commit(upload)
        request = AbortObject(upload.location, upload.stream_id)
        return world.free(abort_object(world.database, request).freed)

    with closing(_connect(world)) as holding:
        row = world.table("objects")
        stream = next(each[4] for each in row if each[2] == first.encode())
        holding.execute("SELECT 1 FROM objects WHERE stream_id = %s FOR UPDATE", [stream])
        # It has the upload, and waits for the first source that is held here.
        ending_thread = run("end", end)
        _wait_for_waiters(world, 1)
        # And this one is not to take the second source before it has the upload.
        copying = run("part", lambda: world.copy_part(upload, 3, world.at(second), 10, 20))
        _wait_for_waiters(world, 2)
        holding.rollback()
    ending_thread.join()
    copying.join()
    assert not isinstance(results["end"], BaseException)
    assert isinstance(results["part"], NotFound)


def test_parts_race_the_commit(world: World) -> None:
    """Many rounds: what comes first is in the object, what comes later is told."""
    for round_ in range(6):
        for key in ("a", "b"):
            world.upload(key, THREE_REMOTE, size=SIZE)
        bodies = {key: world.download(world.at(key)) for key in ("a", "b")}
        upload = world.begin(world.at(f"target{round_}"))
        for part, key in enumerate(("a", "b"), 1):
            world.copy_part(upload, part, world.at(key), 50, 200)
        parts = [
            partial(world.copy_part, upload, number, world.at("ab"[number % 2]), 0, 150)
            for number in range(3, 9)
        ]
        commit = partial(world.commit, upload)
        results = in_parallel([*parts[:3], commit, *parts[3:]])
        copied = results[:3] + results[4:]
        assert not isinstance(results[3], BaseException)
        assert all(each is None or isinstance(each, NotFound) for each in copied)
        expected = bodies["a"][50:250] + bodies["b"][50:250]
        for number, each in zip(range(3, 9), copied, strict=True):
            expected += b"" if each else bodies["ab"[number % 2]][:150]
        assert world.download(world.at(f"target{round_}")) == expected


def test_sources_go_while_they_are_copied(world: World) -> None:
    """A source that is deleted meanwhile lends its bytes, or the part is told; both ways round."""
    for round_ in range(6):
        for key in ("a", "b"):
            world.upload(key, THREE_REMOTE, size=SIZE)
        uploads = [world.begin(world.at(f"t{round_}{n}")) for n in range(2)]
        parts = [
            partial(world.copy_part, upload, part, world.at(key), 20, 150)
            for part, order in ((1, 1), (2, -1))
            for key, upload in zip("ab", uploads[::order], strict=True)
        ]
        deletes = [partial(world.delete, world.at(key)) for key in "ab"]
        results = in_parallel([*parts[:3], *deletes, *parts[3:]])
        for each in results[:3] + results[5:]:
            assert each is None or isinstance(each, NotFound | FailedPrecondition)
        assert not any(isinstance(each, BaseException) for each in results[3:5])
        for upload in uploads:
            world.commit(upload)
            assert len(world.download(upload.location)) % 150 == 0


def test_an_upload_takes_the_expiry_of_its_first_source(world: World) -> None:
    """Of parts that race, sources of one expiry win: the others are told, and none is mixed."""
    ends = [world.clock() + hours * HOUR_US for hours in (5, 7)]
    for number, end in enumerate(ends):
        world.upload(f"s{number}", ONE_REMOTE, size=SIZE, expires_at=end)
    upload = world.begin(world.at("target"))
    results = in_parallel(
        [
            partial(world.copy_part, upload, number + 1, world.at(f"s{number % 2}"), 0, SIZE)
            for number in range(8)
        ]
    )
    refused = [each for each in results if each is not None]
    assert len(refused) == 4
    assert all(isinstance(each, FailedPrecondition) for each in refused)
    assert world.commit(upload).expires_at in ends
