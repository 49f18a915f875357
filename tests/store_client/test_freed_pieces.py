"""Pieces to delete: queued by the transaction that lets them go, deleted whoever is killed."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from calque.errors import Unavailable
from calque.operator.layers.chain import Call
from calque.store.embedded import EmbeddedStore, StoreOptions
from calque.store.metabase.model.records import FreedSegment
from calque.store.nodes.node import Node
from calque.store.open_project import open_project
from calque.store.satellite.piece_deleter import PieceDeleter
from calque.store.serve import serve_store
from calque.store.upkeep.expire import sweep_store
from calque.store.upkeep.fsck import check_store
from tests.program import run_program
from tests.store_client.conftest import TWO_OF_FOUR
from tests.store_client.world import BUCKET, OTHER, SEGMENT, SMALL, World

PIECES = 3 * 4
"""Three segments, each on four nodes."""

KILLED = """
import os, signal, sys
from calque.store.embedded import EmbeddedStore
from calque.store.nodes.node import Node
from calque.store.serve import serve_store
from tests.store_client.world import SMALL, World

folder, verb, when = sys.argv[1], sys.argv[2], int(sys.argv[3])
store = EmbeddedStore.open(folder)
project = World._open(store, store.grant(), SMALL)
deleted = 0

def deadly(call, proceed):
    global deleted
    if call.verb != "delete":
        return proceed(call)
    if deleted == when:
        os.kill(os.getpid(), signal.SIGKILL)
    done = proceed(call)
    deleted += 1
    if deleted == when == 12:
        os.kill(os.getpid(), signal.SIGKILL)
    return done

for node in store.nodes.direct():
    store.nodes._nodes[node.id] = Node(node.id, node.root.layer(deadly), node.placement)
match verb:
    case "delete":
        project.delete_object("photos", "k")
    case "overwrite":
        project.upload("photos", "k", b"new")
    case "served":
        with serve_store(store):
            project.upload("photos", "k", b"new")
    case "copy":
        project.copy_object("archive", "other", "photos", "k")
    case "move":
        project.move_object("archive", "other", "photos", "k")
    case "bucket":
        project.delete_bucket("photos", with_objects=True)
    case "part":
        upload = project.begin_multipart("archive", "parts")
        upload.upload_part(1, bytes(3000))
        upload.upload_part(1, bytes(3000))
        upload.commit()
"""


def killed(folder: Path, verb: str, when: int) -> None:
    """Run a verb in another process, which dies at its ``when``-th deletion of a piece."""
    done = run_program(KILLED, folder, verb, when)
    assert done.returncode == -signal.SIGKILL, done.stderr[-2000:]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store on four nodes with an object of three segments, and an inline one."""
    place = tmp_path / "store"
    options = StoreOptions(redundancy=TWO_OF_FOUR)
    with open_project(place, options=options, settings=SMALL) as project:
        for bucket in (BUCKET, OTHER):
            project.create_bucket(bucket)
        project.upload(BUCKET, "k", os.urandom(3 * SEGMENT))
        project.upload(OTHER, "other", b"small")
    return place


def pieces_in(folder: Path) -> int:
    return sum(1 for path in (folder / "nodes").glob("*/pieces/*/*/*") if path.is_file())


@pytest.mark.parametrize(
    ("verb", "when"),
    [
        ("delete", 0),
        ("delete", 5),
        ("delete", 12),
        ("overwrite", 1),
        ("served", 4),
        ("copy", 0),
        ("move", 7),
        ("bucket", 3),
    ],
)
def test_a_kill_leaves_no_orphan(folder: Path, verb: str, when: int) -> None:
    """Killed before, amid and after deleting pieces: whoever opens the store next deletes them."""
    killed(folder, verb, when)
    assert pieces_in(folder) == PIECES - when
    store = EmbeddedStore.open(folder)
    try:
        assert pieces_in(folder) == 0
        assert store.endpoint.list_waiting_pieces() == []
        assert check_store(store, young=True) == []
    finally:
        store.close()


def test_a_replaced_part_is_queued_too(folder: Path) -> None:
    """A segment that is committed anew over another frees its pieces in the same transaction."""
    killed(folder, "part", 0)
    store = EmbeddedStore.open(folder)
    try:
        assert store.endpoint.list_waiting_pieces() == []
        findings = check_store(store, young=True)
        # Segments on their way at the kill were never committed: those may be left.
        assert {finding.kind for finding in findings} <= {"orphaned piece"}
    finally:
        store.close()


def silent(call: Call, proceed: Callable[[Call], Any]) -> Any:
    raise Unavailable("the node is away")


def test_a_kill_while_a_node_is_away(folder: Path) -> None:
    """What the away node holds waits through openings and sweeps, and goes when it is back."""
    killed(folder, "delete", 2)
    away = folder / "nodes" / "3"
    away.rename(folder / "elsewhere")
    away.symlink_to(away)  # every request to it is an error of the disk
    for _ in range(2):
        EmbeddedStore.open(folder).close()
    store = EmbeddedStore.open(folder)
    try:
        assert [len(each.pieces) for each in store.endpoint.list_waiting_pieces()] == [1, 1, 1]
        assert sweep_store(store).deleted_pieces == 0
        away.unlink()
        (folder / "elsewhere").rename(away)
        assert check_store(store, young=True) == []
        assert sweep_store(store).deleted_pieces == 3
        assert sweep_store(store).deleted_pieces == 0
        assert pieces_in(folder) == 0
    finally:
        store.close()


def test_a_server_answers_before_pieces_are_gone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is replaced is deleted behind the answer, and all of it by the time the server ends."""
    monkeypatch.setattr("calque.store.nodes.node.ANSWER_WITHIN", 600.0)
    answered, in_time = threading.Event(), []

    def slow(call: Call, proceed: Callable[[Call], Any]) -> Any:
        if call.verb == "delete":
            in_time.append(answered.wait(20))
        return proceed(call)

    for node in world.store.nodes.direct():
        slowed = Node(node.id, node.root.layer(slow), node.placement)
        world.store.nodes._nodes[node.id] = slowed
    world.project.upload(BUCKET, "k", os.urandom(3 * SEGMENT))
    with serve_store(world.store):
        world.project.upload(BUCKET, "k", b"new")
        answered.set()
    assert in_time
    assert all(in_time)
    assert world.piece_count() == 0
    world.check()


def test_what_was_taken_is_deleted_before_the_end() -> None:
    """Also what waits behind others when the server ends; what comes later is for its caller."""
    first, second, late = (FreedSegment(bytes([n]) * 32, b"\x01\x00\x01") for n in range(3))
    begun, go_on = threading.Event(), threading.Event()
    deleted: list[FreedSegment] = []

    def free(batch: Sequence[FreedSegment]) -> None:
        begun.set()
        assert go_on.wait(60)
        deleted.extend(batch)

    deleter = PieceDeleter(free)
    deleter.start()
    assert deleter.take([first])
    assert begun.wait(60)
    assert deleter.take([second])
    ending = threading.Thread(target=deleter.stop)
    ending.start()
    while deleter.take([]):
        time.sleep(0.01)
    assert not deleter.take([late])
    go_on.set()
    ending.join()
    assert deleted == [first, second]


def test_many_freed_pieces_are_not_put_off(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where too many wait already the call itself deletes: nobody frees faster than nodes do."""
    monkeypatch.setattr("calque.store.satellite.piece_deleter.MOST_WAITING", 2)
    world.project.upload(BUCKET, "k", os.urandom(3 * SEGMENT))
    with serve_store(world.store):
        world.project.delete_object(BUCKET, "k")
        assert world.piece_count() == 0


def test_what_queues_and_what_does_not(world: World) -> None:
    """A copy queues nothing, a promoted original nothing, the last holder all, exactly once."""
    world.project.upload(BUCKET, "k", os.urandom(3 * SEGMENT))
    held = world.piece_count()
    directory = world.store.nodes
    whole = dict(directory._nodes)
    for node in directory.direct():
        directory._nodes[node.id] = Node(node.id, node.root.layer(silent), node.placement)
    world.project.copy_object(BUCKET, "k", BUCKET, "copy")
    world.project.copy_object(BUCKET, "k", OTHER, "second")
    world.project.delete_object(BUCKET, "copy")
    world.project.delete_object(BUCKET, "k")
    assert world.store.endpoint.list_waiting_pieces() == []
    world.project.delete_object(OTHER, "second")
    waiting = world.store.endpoint.list_waiting_pieces()
    directory._nodes.update(whole)
    assert sum(len(each.pieces) for each in waiting) == held == world.piece_count()
    assert world.store.endpoint.free_waiting(most=0) == 0
    assert world.store.endpoint.free_waiting() == held
    assert world.store.endpoint.free_waiting() == 0
    assert world.piece_count() == 0
