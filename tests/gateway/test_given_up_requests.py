"""A client that has hung up takes its request for failed: nothing of it is done after that."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial

from calque.store.metabase.engine.group_commit import SharedCommits
from tests.gateway.test_server import connect, head_of
from tests.gateway.world import World


@contextmanager
def somebody_writes(world: World) -> Iterator[None]:
    """Another process holds the write lock of the database."""
    file = world.store.endpoint.database.engine.url.database or ""
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def wait_until(met: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not met():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def has_waiting(shared: SharedCommits, number: int) -> bool:
    return len(shared._queue) == number


def test_nothing_is_done_for_a_client_that_has_gone(world: World, bucket: str) -> None:
    """Deletes, puts small and large, copies and buckets that waited for the database."""
    project = world.project
    shared = world.store.endpoint.database._shared
    assert shared is not None
    for key in ("deleted", "replaced", "source"):
        project.upload(bucket, key, b"before")
    large = b"x" * 100_000
    copied = {"x-amz-copy-source": f"{bucket}/source"}
    requests: list[tuple[str, str, dict[str, str], bytes]] = [
        ("DELETE", f"/{bucket}/deleted", {}, b""),
        ("PUT", f"/{bucket}/replaced", {}, b"after"),
        ("PUT", f"/{bucket}/small", {}, b"after"),
        ("PUT", f"/{bucket}/large", {}, large),
        ("PUT", f"/{bucket}/copy", copied, b""),
        ("PUT", f"/{bucket}-new", {}, b""),
    ]
    with somebody_writes(world):
        for number, (method, path, headers, body) in enumerate(requests, 1):
            sent = headers | {"content-length": str(len(body))}
            with connect(world) as line:
                line.sendall(head_of(world, method, path, sent) + body)
                wait_until(partial(has_waiting, shared, number))
    wait_until(lambda: not shared._queue)
    assert [entry.key for entry in project.list_objects(bucket)] == [
        "deleted", "replaced", "source",
    ]  # fmt: skip
    assert project.download(bucket, "replaced").read() == b"before"
    assert not list(project.list_pending(bucket))
    assert not [piece for node in world.store.nodes.direct() for piece in node.pieces()]
    assert f"{bucket}-new" not in [each.name for each in project.list_buckets()]


def test_what_is_given_up_is_cleared_away(world: World, bucket: str) -> None:
    """A large upload that breaks off in its midst leaves neither an upload nor a piece."""
    before = {piece for node in world.store.nodes.direct() for piece in node.pieces()}
    with connect(world) as line:
        sent = {"content-length": str(4 * 2**20)}
        line.sendall(head_of(world, "PUT", f"/{bucket}/large", sent) + bytes(3 * 2**20))
        wait_until(lambda: bool(list(world.project.list_pending(bucket))))
    wait_until(lambda: not list(world.project.list_pending(bucket)))
    wait_until(lambda: {p for node in world.store.nodes.direct() for p in node.pieces()} == before)
