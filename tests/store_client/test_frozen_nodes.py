"""A node that says nothing costs its deadline, once: no upload, download or delete hangs on it."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from calque.errors import InvalidInput, TimedOut, Unavailable
from calque.operator.layers.chain import Call
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.nodes import liveness, node, streams, sweeps, upload
from calque.store.nodes.erasure import Redundancy
from calque.store.nodes.node import Node
from calque.store.nodes.upload import Patience
from calque.store.open_project import open_project
from calque.store.project import Project
from calque.store.relay import server
from calque.store.serve import serve_store
from calque.store.upkeep.backup import copy_store
from calque.store.upkeep.exit import exit_node
from calque.store.upkeep.expire import sweep_store
from calque.store.upkeep.fsck import check_store
from calque.store.upkeep.gc import collect_store
from tests.store_client.conftest import ONE
from tests.store_client.world import BUCKET, SEGMENT, SMALL, World

FOUR_OF_SIX = Redundancy.of(4, 6, share_size=50)
TWO_OF_SIX = Redundancy.of(2, 6, share_size=50)
SILENCE = 3.0
"""Long enough that no node that lives is called silent on a slow machine."""
HASTE = Patience(least=0.05, share=0, hedge=0.4, silence=SILENCE)
BRISK = replace(SMALL, upload_patience=HASTE, download_silence=SILENCE)


@pytest.fixture(autouse=True)
def brisk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small requests are given up sooner, too."""
    for module in (liveness, node, upload):
        monkeypatch.setattr(module, "ANSWER_WITHIN", SILENCE)


@contextmanager
def frozen(
    world: World, *numbers: int, verbs: tuple[str, ...] = (), below: str = ""
) -> Iterator[None]:
    """Some nodes never answer (these verbs, or any; below a path) until the block is over."""
    thawed = threading.Event()

    def ice(call: Call, proceed: Callable[[Call], Any]) -> Any:
        if (not verbs or call.verb in verbs) and call.path.startswith(below):
            thawed.wait()
        return proceed(call)

    directory = world.store.nodes
    whole = dict(directory._nodes)
    before = set(threading.enumerate())
    for number in numbers:
        each = directory.direct()[number]
        directory._nodes[each.id] = Node(each.id, each.root.layer(ice), each.placement)
    try:
        yield
    finally:
        thawed.set()
        directory._nodes.update(whole)
        for thread in set(threading.enumerate()) - before:
            if thread.name.startswith(("piece-", "node-")):
                thread.join()


def brisk_project(world: World) -> Project:
    return world.through(world.store.grant(), BRISK)


@pytest.mark.parametrize("verbs", [(), ("write_begin",), ("write_chunk",), ("write_commit",)])
def test_an_upload_to_two_frozen_nodes_of_six_ends(
    make_world: Callable[..., World], verbs: tuple[str, ...]
) -> None:
    """Four of five that are needed answer: the error names the silent ones, and all is clean."""
    world = make_world(FOUR_OF_SIX)
    with frozen(world, 1, 4, verbs=verbs):
        with pytest.raises(Unavailable) as caught:
            brisk_project(world).upload(BUCKET, "k", os.urandom(3 * SEGMENT))
        assert "".join(caught.value.__notes__).count("has not answered") == 2
        # While they hang they are not waited for again.
        with pytest.raises(Unavailable, match="5 are needed"):
            world.project.upload(BUCKET, "k", os.urandom(SEGMENT))
    assert world.keys() == []
    world.project.upload(BUCKET, "k", os.urandom(SEGMENT))


def _holders(world: World, key: str) -> list[set[bytes]]:
    """The nodes of each segment."""
    session = world.project.session
    located = session.locate(BUCKET, key)
    answer = session.metainfo.list_segments(
        pb.SegmentListRequest(
            header=session.header, bucket=BUCKET, encrypted_object_key=located.encrypted
        )
    )
    return [{piece.node_id for piece in segment.pieces} for segment in answer.segments]


@pytest.mark.parametrize("verbs", [(), ("write_begin",), ("write_chunk",), ("write_commit",)])
def test_spare_nodes_stand_in_for_frozen_ones(
    make_world: Callable[..., World], verbs: tuple[str, ...]
) -> None:
    """With more nodes than pieces every upload succeeds, each piece on a node of its own."""
    world, content = make_world(FOUR_OF_SIX, nodes=8), os.urandom(2 * SEGMENT)
    frozen_ids = {world.store.nodes.direct()[number].id for number in (1, 4)}
    with frozen(world, 1, 4, verbs=verbs):
        project = brisk_project(world)
        for number in range(4):
            project.upload(BUCKET, f"k{number}", content)
            assert project.download(BUCKET, f"k{number}").read() == content
    for number in range(4):
        for nodes in _holders(world, f"k{number}"):
            assert len(nodes) >= FOUR_OF_SIX.success
            assert not nodes & frozen_ids


def test_a_spare_node_for_the_only_one(make_world: Callable[..., World]) -> None:
    """Where a segment is one piece, and there are two nodes, the other takes it."""
    world, content = make_world(ONE, nodes=2), os.urandom(SEGMENT)
    with frozen(world, 0):
        for number in range(6):
            brisk_project(world).upload(BUCKET, f"k{number}", content)
    assert all(world.project.download(BUCKET, f"k{n}").read() == content for n in range(6))


def test_more_frozen_nodes_than_spare_ones(make_world: Callable[..., World]) -> None:
    """Three of seven frozen, four of five needed: it is said, in its time."""
    world = make_world(FOUR_OF_SIX, nodes=7)
    with frozen(world, 0, 1, 2), pytest.raises(Unavailable, match="5 are needed"):
        brisk_project(world).upload(BUCKET, "k", os.urandom(SEGMENT))
    assert world.keys() == []


def test_a_node_and_its_substitute(make_world: Callable[..., World]) -> None:
    """A slow node that gets through after all leaves no second copy of its piece."""
    world, content = make_world(ONE, nodes=2), os.urandom(SEGMENT)
    settings = replace(BRISK, upload_patience=replace(HASTE, hedge=0.05, silence=60))
    with slow(world, 0, seconds=0.3), slow(world, 1, seconds=0.3):
        for number in range(4):
            world.through(world.store.grant(), settings).upload(BUCKET, f"k{number}", content)
    assert world.piece_count() == 4


def test_a_spare_node_holds_one_piece(make_world: Callable[..., World]) -> None:
    """A client that names it for two of them is refused: both would go with one disk."""
    world = make_world(FOUR_OF_SIX, nodes=8)
    session = world.project.session
    multipart = world.project.begin_multipart(BUCKET, "k")
    begun = session.metainfo.begin_segment(
        pb.SegmentBeginRequest(
            header=session.header,
            upload_id=multipart.id,
            position=pb.SegmentPosition(part_number=1, index=0),
        )
    )
    assert len(begun.spares) == 2 * len(begun.pieces)
    spare = begun.spares[0].node.id
    own = [pb.Piece(number=each.number, node_id=each.node.id) for each in begun.pieces]
    foreign = pb.Piece(number=0, node_id=own[1].node_id)
    doubled = [pb.Piece(number=number, node_id=spare) for number in (0, 1)]
    for pieces, why in (([*doubled, *own[2:]], "twice"), ([foreign, *own[2:]], "not offered")):
        request = pb.SegmentCommitRequest(
            header=session.header,
            segment_id=begun.segment_id,
            encrypted_key_nonce=os.urandom(12),
            encrypted_key=os.urandom(48),
            encrypted_size=116,
            plain_size=100,
            pieces=pieces,
        )
        with pytest.raises(InvalidInput, match=why):
            session.metainfo.commit_segment(request)
    multipart.abort()


@contextmanager
def slow(world: World, number: int, *, seconds: float) -> Iterator[None]:
    """A node that takes its time over a commit."""

    def wait(call: Call, proceed: Callable[[Call], Any]) -> Any:
        if call.verb == "write_commit":
            threading.Event().wait(seconds)
        return proceed(call)

    directory = world.store.nodes
    each = directory.direct()[number]
    directory._nodes[each.id] = Node(each.id, each.root.layer(wait), each.placement)
    before = set(threading.enumerate())
    try:
        yield
    finally:
        directory._nodes[each.id] = each
        for thread in set(threading.enumerate()) - before:
            if thread.name.startswith("piece-"):
                thread.join()


def test_a_download_with_two_silent_nodes(make_world: Callable[..., World]) -> None:
    """Four of six are there, four are needed: hedged, it costs a moment and succeeds."""
    world, content = make_world(FOUR_OF_SIX), os.urandom(3 * SEGMENT + 7)
    world.project.upload(BUCKET, "k", content)
    for pair in ((0, 1), (2, 5)):
        with frozen(world, *pair):
            assert brisk_project(world).download(BUCKET, "k").read() == content


def test_two_frozen_nodes_within_the_margin_are_passed_over(
    make_world: Callable[..., World],
) -> None:
    """Uploads, downloads, sweeps and deletes all succeed, and what was put off is done later."""
    world, content = make_world(TWO_OF_SIX), os.urandom(3 * SEGMENT + 7)
    world.project.upload(BUCKET, "before", content)
    with frozen(world, 0, 5):
        project = brisk_project(world)
        project.upload(BUCKET, "during", content)
        for key in ("before", "during"):
            assert project.download(BUCKET, key).read() == content
        project.delete_object(BUCKET, "before")
        sweep_store(world.store)
        kinds = {each.kind for each in check_store(world.store, young=True)}
        assert kinds == {"node that does not answer"}
        assert world.store.endpoint.list_waiting_pieces()
    sweep_store(world.store)
    assert not world.store.endpoint.list_waiting_pieces()


def test_a_download_without_enough_nodes_ends(make_world: Callable[..., World]) -> None:
    """Three of six frozen, four needed: it is said, and later it works."""
    world, content = make_world(FOUR_OF_SIX), os.urandom(2 * SEGMENT)
    world.project.upload(BUCKET, "k", content)
    with frozen(world, 0, 1, 2), pytest.raises(Unavailable) as caught:
        brisk_project(world).download(BUCKET, "k").read()
    assert "has not answered" in "".join(caught.value.__notes__)
    assert world.project.download(BUCKET, "k").read() == content


def test_the_only_node_is_frozen(make_world: Callable[..., World]) -> None:
    """Upload and download end with TimedOut; the delete stands and its pieces wait."""
    world, content = make_world(ONE), os.urandom(2 * SEGMENT)
    world.project.upload(BUCKET, "k", content)
    with frozen(world, 0), pytest.raises(TimedOut):
        brisk_project(world).upload(BUCKET, "other", content)
    with frozen(world, 0), pytest.raises(TimedOut):
        brisk_project(world).download(BUCKET, "k").read()
    with frozen(world, 0):
        assert world.project.delete_object(BUCKET, "k")
        assert world.store.endpoint.list_waiting_pieces()
    sweep_store(world.store)
    assert world.piece_count() == 0


def test_a_slow_source_is_not_a_silent_node(make_world: Callable[..., World]) -> None:
    """Bytes that come late are waited for: the nodes owe nothing meanwhile."""
    world = make_world(FOUR_OF_SIX)
    parts = [os.urandom(SEGMENT // 2) for _ in range(3)]
    pause = threading.Event()

    def slowly() -> Iterator[bytes]:
        yield parts[0]
        pause.wait(1.3 * SILENCE)
        yield from parts[1:]

    brisk_project(world).upload(BUCKET, "k", slowly())
    assert world.project.download(BUCKET, "k").read() == b"".join(parts)


def test_frozen_nodes_behind_a_relay(tmp_path: Path) -> None:
    """A client elsewhere does not hang either. (What it wrote is left to the sweep of orphans.)"""
    world, content = World.make(tmp_path / "s", FOUR_OF_SIX), os.urandom(2 * SEGMENT)
    with frozen(world, 2, 3), serve_store(world.store) as served:
        grant = world.store.grant()
        with (
            open_project(served.address, access=grant, settings=BRISK) as project,
            pytest.raises(Unavailable, match="5 are needed"),
        ):
            project.upload(BUCKET, "k", content)
    assert world.keys() == []
    world.close()


@pytest.mark.parametrize("verbs", [(), ("read",), ("write_commit",)])
def test_frozen_nodes_keep_no_thread_of_the_relay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verbs: tuple[str, ...]
) -> None:
    """Client after client leaves two requests on frozen nodes; the relay still has its threads."""
    monkeypatch.setattr(server, "STREAMS", 8)
    monkeypatch.setattr(server, "STREAMS_PER_NODE", 1)
    monkeypatch.setattr(streams, "SILENCE", 2.0)
    slower = Patience(least=0.05, share=0, silence=20)
    settings = replace(BRISK, upload_patience=slower, download_silence=20)
    world, content = World.make(tmp_path / "s", TWO_OF_SIX), os.urandom(SEGMENT)
    grant = world.store.grant()
    world.project.upload(BUCKET, "before", content)
    with frozen(world, 0, 5, verbs=verbs), serve_store(world.store) as served:
        for number in range(5):
            with open_project(served.address, access=grant, settings=settings) as project:
                project.upload(BUCKET, f"k{number}", content)
                assert project.download(BUCKET, "before").read() == content
                assert project.download(BUCKET, f"k{number}").read() == content
    world.close()


def test_a_backup_and_an_exit_do_without_a_node_that_freezes(
    make_world: Callable[..., World], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It answers when it is asked, and freezes over a piece: others have the bytes."""
    monkeypatch.setattr(streams, "SILENCE", 2.0)
    world, content = make_world(FOUR_OF_SIX, nodes=8), os.urandom(2 * SEGMENT)
    for number in range(4):
        world.project.upload(BUCKET, f"k{number}", content)
    leaving = world.store.nodes.direct()[0]
    with frozen(world, 0, verbs=("read",), below="pieces/"):
        report = copy_store(world.store, tmp_path / "backup")
        assert (report.lost_segments, report.missing_pieces > 0) == (0, True)
        assert exit_node(world.store, leaving.id.hex()).is_done
    with open_project(tmp_path / "backup", settings=SMALL) as saved:
        for number in range(4):
            assert saved.download(BUCKET, f"k{number}").read() == content
            assert leaving.id not in set().union(*_holders(world, f"k{number}"))
            assert world.project.download(BUCKET, f"k{number}").read() == content


@pytest.mark.parametrize("below", ["pieces/", "expiries/"])
def test_upkeep_does_without_a_node_that_freezes(
    make_world: Callable[..., World], monkeypatch: pytest.MonkeyPatch, below: str
) -> None:
    """It freezes while its pieces are listed or deleted: the other nodes are looked after."""
    monkeypatch.setattr(sweeps, "SILENCE", 2.0)
    world = make_world(TWO_OF_SIX)
    end = world.clock.now() + timedelta(hours=1)
    world.project.upload(BUCKET, "k", os.urandom(SEGMENT), expires=end)
    world.project.upload(BUCKET, "stays", os.urandom(SEGMENT))
    with frozen(world, 3, below=below):
        world.clock.ahead += timedelta(days=4)
        report = sweep_store(world.store)
        assert report.expired_objects == 1
        assert report.expired_pieces == 5
        # It is not waited for again while it hangs.
        collected = {each.node: each.error for each in collect_store(world.store).nodes}
        name = world.store.nodes.direct()[3].name
        assert [node for node, error in collected.items() if error] == [name]
        assert "has not answered" in collected[name]
        kinds = [each.kind for each in check_store(world.store)]
        assert kinds == ["node that does not answer"]
    assert not any(each.error for each in collect_store(world.store).nodes)
    assert world.keys() == ["stays"]
