"""Pieces on their way have a bounded room, and nobody takes more than the tokens say."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from calque.errors import (
    ConditionNotMatch,
    InvalidInput,
    ResourceExhausted,
)
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.open_project import open_project
from calque.store.project import Project
from calque.store.satellite import piece_tokens
from tests.store_client.served_pieces import Served, committing, serving
from tests.store_client.world import BUCKET, SMALL


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path / "s") as made:
        yield made


@pytest.fixture
def bounded(served: Served, monkeypatch: pytest.MonkeyPatch) -> Served:
    """The other project may hold 30,000 bytes, and has no room besides for what is open."""
    monkeypatch.setattr(piece_tokens, "ROOM", 0)
    project = served.store.endpoint.admin.find_project("other")
    assert project is not None
    served.store.endpoint.admin.set_limits(
        project.project_id, limit_bytes=30_000, limit_segments=None
    )
    return served


def put_until_refused(served: Served) -> int:
    """Begin segments and put pieces of 10,000 bytes, none of which is committed."""
    node = served.node(served.other)
    for pieces in range(1_000):
        begun = served.begin(served.other)
        try:
            node.write(b"", [bytes(10_000)], None, token=begun.pieces[0].token)
        except ResourceExhausted:
            return pieces
    raise AssertionError("nobody stopped it")


def test_open_pieces_are_bounded_in_sum(bounded: Served) -> None:
    """A project puts its quota once more and a segment, then no more; other projects go on."""
    pieces = put_until_refused(bounded)
    assert 3 <= pieces <= 12
    assert bounded.piece_count() == pieces
    assert put_until_refused(bounded) == 0
    bounded.node(bounded.mine).write(
        b"", [bytes(10_000)], None, token=bounded.begin(bounded.mine).pieces[0].token
    )
    # After two days the sweep has taken them, and there is room again.
    bounded.clock.ahead = timedelta(hours=49)
    assert put_until_refused(bounded) == pieces


def test_a_put_that_fails_is_not_counted(bounded: Served) -> None:
    """Neither a piece that is there already, nor one with too many bytes."""
    begun = bounded.begin(bounded.other)
    node = bounded.node(bounded.other)
    node.write(b"", [bytes(1_000)], None, token=begun.pieces[0].token)
    for _ in range(20):
        with pytest.raises(ConditionNotMatch):
            node.write(b"", [bytes(10_000)], None, token=begun.pieces[0].token)
        with pytest.raises(ResourceExhausted, match="than its token"):
            node.write(b"", [bytes(100_000)], None, token=begun.pieces[1].token)
    assert put_until_refused(bounded) >= 3


def test_objects_are_replaced_at_a_full_quota(bounded: Served) -> None:
    """Again and again, with as many bytes; uploads that are aborted give their room back."""
    content = os.urandom(20_000)
    settings = replace(SMALL, segment_size=20_000)
    with open_project(bounded.address, access=bounded.other, settings=settings) as project:
        for _ in range(8):
            project.upload(BUCKET, "full", content)
        for _ in range(8):
            upload = project.begin_multipart(BUCKET, "part")
            upload.upload_part(1, content)
            upload.abort()
        project.upload(BUCKET, "full", content)
        assert project.download(BUCKET, "full").read() == content


def test_pieces_of_slow_nodes_use_up_no_room(bounded: Served) -> None:
    """What comes after its segment was committed without it is not counted with the open ones."""
    with bounded.open(bounded.other) as project:
        node = bounded.node(bounded.other)
        for _ in range(5):
            begun = bounded.begin(bounded.other)
            for piece in begun.pieces[:2]:
                node.write(b"", [bytes(1_000)], None, token=piece.token)
            request = committing(project, begun, 1_000)
            del request.pieces[2:]
            project.session.metainfo.commit_segment(request)
            node.write(b"", [bytes(1_000)], None, token=begun.pieces[2].token)
    assert put_until_refused(bounded) >= 3


def test_a_segment_is_not_smaller_than_its_pieces(bounded: Served) -> None:
    """A quota is charged for what a segment says: so it cannot say less than was put for it."""
    node = bounded.node(bounded.other)
    begun = bounded.begin(bounded.other)
    for piece in begun.pieces:
        node.write(b"", [bytes(10_000)], None, token=piece.token)
    with bounded.open(bounded.other) as project:
        with pytest.raises(InvalidInput, match="a piece has 10000 bytes"):
            project.session.metainfo.commit_segment(committing(project, begun, 100))
        project.session.metainfo.commit_segment(committing(project, begun, 20_000))


def commit_small(served: Served, project: Project, begun: pb.SegmentBeginResponse) -> None:
    """Commit a segment of 100 bytes that names its first two pieces of three."""
    node = served.node(served.other)
    for piece in begun.pieces[:2]:
        node.write(b"", [bytes(50)], None, token=piece.token)
    request = committing(project, begun, 100)
    del request.pieces[2:]
    project.session.metainfo.commit_segment(request)


def test_a_piece_that_a_segment_left_out_is_no_larger(bounded: Served) -> None:
    """Put after the commit it may have as many bytes as the others, and no more."""
    node = bounded.node(bounded.other)
    with bounded.open(bounded.other) as project:
        begun = bounded.begin(bounded.other)
        commit_small(bounded, project, begun)
        with pytest.raises(ResourceExhausted, match="fewer bytes"):
            node.write(b"", [bytes(1_000)] * 10, None, token=begun.pieces[2].token)
    assert bounded.piece_count() == 2


def test_pieces_that_segments_left_out_stay_open(bounded: Served) -> None:
    """Put before the commit, what they have beyond the others counts until it is swept."""
    node = bounded.node(bounded.other)

    def put_large_one(project: Project) -> None:
        begun = bounded.begin(bounded.other)
        node.write(b"", [bytes(10_000)], None, token=begun.pieces[2].token)
        commit_small(bounded, project, begun)
        for each in project.list_pending(BUCKET):
            project.resume_multipart(BUCKET, each.key, each.upload_id).abort()

    with bounded.open(bounded.other) as project:
        put_large_one(project)
        with pytest.raises(ResourceExhausted):
            list(map(put_large_one, [project] * 60))
    assert bounded.piece_count() < 40


def test_a_piece_on_its_way_does_not_grow_after_the_commit(bounded: Served) -> None:
    """Begun before its segment was committed, it ends with an error, and nothing of it is kept."""
    committed = threading.Event()
    node = bounded.node(bounded.other)
    with bounded.open(bounded.other) as project, ThreadPoolExecutor(1) as threads:
        begun = bounded.begin(bounded.other)
        sent = threading.Event()

        def chunks() -> Iterator[bytes]:
            yield bytes(50)
            sent.set()
            committed.wait()
            yield bytes(9_000)

        put = threads.submit(node.write, b"", chunks(), None, token=begun.pieces[0].token)
        try:
            sent.wait()
            node.write(b"", [bytes(50)], None, token=begun.pieces[1].token)
            request = committing(project, begun, 100)
            del request.pieces[2:]
            project.session.metainfo.commit_segment(request)
        finally:
            committed.set()
        with pytest.raises(ResourceExhausted, match="fewer bytes"):
            put.result()
    assert bounded.piece_count() == 1
