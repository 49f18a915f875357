"""The connection breaks after the satellite has acted and before its answer is there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest
from google.protobuf.message import Message

from calque.errors import ConditionNotMatch, NotFound, Unavailable
from calque.store.metainfo import Metainfo, MetainfoClient
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.project import Project
from calque.store.satellite import serve_metainfo
from calque.store.uplink.session import Session
from tests.servers.cutting import CuttingProxy
from tests.store_client.world import BUCKET, OTHER, SEGMENT, SMALL, World


class Cutting(Metainfo):
    """A satellite that does what it is asked; then, for chosen calls, the connection is cut."""

    def __init__(self, satellite: Metainfo) -> None:
        self._satellite = satellite
        self.cut: Callable[[], None] = lambda: None
        self.turns: dict[str, int] = {}
        self.before: dict[str, int] = {}
        """As ``turns``, but the connection is cut before the satellite acts."""
        self.requests: list[Message] = []
        self.calls: list[str] = []

    def call(self, name: str, request: Message) -> Message:
        self.calls.append(name)
        self.requests.append(request)
        if self.before.get(name, 0) > 0:
            self.before[name] -= 1
            self.cut()
            raise Unavailable("the request was lost")
        answer = self._satellite.call(name, request)
        if self.turns.get(name, 0) > 0:
            self.turns[name] -= 1
            self.cut()
        return answer

    def close(self) -> None:
        """The store closes it."""


@dataclass
class Line:
    """A project behind a proxy that cuts."""

    world: World
    project: Project
    satellite: Cutting


@pytest.fixture
def line(plain_world: World) -> Iterator[Line]:
    satellite = Cutting(plain_world.store.endpoint)
    server = serve_metainfo(satellite)
    grant = plain_world.store.grant()
    with CuttingProxy(server.address) as proxy:
        satellite.cut = proxy.cut
        session = Session(
            client := MetainfoClient(proxy.address),
            bytes(grant.api_key),
            grant.encryption,
            nodes=plain_world.store.nodes,
            settings=replace(SMALL, copy_page=2),
        )
        assert session.limits.project_id
        yield Line(plain_world, Project(session, grant), satellite)
        client.close()
    server.stop(0)


@pytest.mark.parametrize("times", [1, 3])
def test_a_lost_reply_to_commit(line: Line, times: int) -> None:
    """The upload is committed once, and the caller gets the object."""
    content = os.urandom(2 * SEGMENT)
    line.satellite.turns = {"CommitObject": times}
    made = line.project.upload(BUCKET, "k", content, if_not_exists=True)
    assert line.satellite.calls.count("CommitObject") == times + 1
    assert line.world.project.stat(BUCKET, "k") == made
    assert line.world.project.download(BUCKET, "k").read() == content
    assert line.world.store.endpoint.list_waiting_pieces() == []


def test_every_call_of_an_upload(line: Line) -> None:
    """Each answer of an upload in parts, of a copy and of a move is lost once; all succeed."""
    content = os.urandom(5 * SEGMENT + 7)
    names = ("BeginSegment", "CommitSegment", "MakeInlineSegment", "ListSegments", "CommitObject",
             "BeginCopyObject", "FinishCopyObject", "BeginMoveObject", "FinishMoveObject",
             "GetObject", "ListObjects")  # fmt: skip
    line.satellite.turns = dict.fromkeys(names, 1)
    project = line.project
    upload = project.begin_multipart(BUCKET, "k", metadata={"m": "1"})
    upload.upload_part(1, content)
    made = upload.commit()
    copied = project.copy_object(BUCKET, "k", OTHER, "copy")
    moved = project.move_object(BUCKET, "k", OTHER, "moved")
    assert (moved.etag, moved.size) == (made.etag, made.size)
    assert project.stat(OTHER, "copy") == copied
    assert project.download(OTHER, "copy").read() == content
    assert [entry.key for entry in project.list_objects(OTHER)] == ["copy", "moved"]
    assert set(line.satellite.turns.values()) == {0}
    assert {row.version for row in (copied, moved)} == {1}


def test_a_line_that_stays_dead(line: Line) -> None:
    """After a few tries the caller is told, and may ask what has become of it."""
    line.satellite.turns = {"CommitObject": 99}
    content = os.urandom(SEGMENT)
    with pytest.raises(Unavailable):
        line.project.upload(BUCKET, "k", content)
    assert line.satellite.calls.count("CommitObject") == 4
    assert line.world.project.download(BUCKET, "k").read() == content


@pytest.mark.parametrize("content", [b"", b"small"], ids=["empty", "inline"])
def test_a_lost_reply_to_a_small_upload(line: Line, content: bytes) -> None:
    """One call stores it; a repeat of the call gives what the first one made."""
    line.satellite.turns = {"PutInlineObject": 2}
    made = line.project.upload(BUCKET, "k", content, metadata={"m": "1"}, if_not_exists=True)
    assert [each for each in line.satellite.calls if each != "GetProject"] == [
        "PutInlineObject"
    ] * 3
    assert line.world.project.stat(BUCKET, "k") == made
    assert made.version == 1
    assert line.world.project.download(BUCKET, "k").read() == content


def test_lost_replies_to_ranges_and_prefixes(line: Line) -> None:
    """Each answer is lost once: parts are there once, and all below the prefix has moved once."""
    content = os.urandom(3 * SEGMENT)
    line.project.upload(BUCKET, "old/k", content)
    names = ("CopyPart", "BeginPrefix", "StagePrefix", "FinishPrefix")
    line.satellite.turns = dict.fromkeys(names, 1)
    upload = line.project.begin_multipart(BUCKET, "old/ranges")
    upload.copy_part(1, BUCKET, "old/k", offset=100, length=2500)
    assert [(part.number, part.size, part.copied) for part in upload.parts()] == [(1, 2500, True)]
    upload.commit()
    assert line.project.move_prefix(BUCKET, "old/", OTHER, "new/").objects == 2
    assert set(line.satellite.turns.values()) == {0}
    assert line.world.keys(OTHER) == ["new/k", "new/ranges"]
    assert line.project.download(OTHER, "new/ranges").read() == content[100:2600]


def test_a_lost_reply_to_many_deletes(line: Line) -> None:
    """What was deleted is told as deleted, and what came since stays."""
    for key in ("a", "b"):
        line.project.upload(BUCKET, key, b"small")
    line.satellite.turns = {"DeleteObjects": 1}
    gone = line.project.delete_objects(BUCKET, ["a", "b"])
    assert [(each.key, each.deleted, each.error) for each in gone] == [
        ("a", True, None), ("b", True, None),
    ]  # fmt: skip
    assert line.satellite.calls.count("DeleteObjects") == 1
    assert line.world.keys() == []


@pytest.mark.parametrize("named", [False, True])
def test_a_lost_reply_to_delete(line: Line, named: bool) -> None:
    """The object is gone, the caller is told so, and no second delete was sent."""
    made = line.project.upload(BUCKET, "k", b"small")
    line.satellite.turns = {"DeleteObject": 1}
    assert line.project.delete_object(BUCKET, "k", if_match=made.etag if named else None)
    assert line.satellite.calls.count("DeleteObject") == 1
    with pytest.raises(NotFound):
        line.world.project.stat(BUCKET, "k")


def test_a_delete_that_is_repeated_names_its_object(line: Line) -> None:
    """A delete that never arrived is sent again, for the object that the client sees."""
    made = line.project.upload(BUCKET, "k", b"small")
    line.satellite.before = {"DeleteObject": 1}
    assert line.project.delete_object(BUCKET, "k")
    first, second = (
        request.if_match_stream_id
        for request in line.satellite.requests
        if isinstance(request, pb.ObjectDeleteRequest)
    )
    assert (first, second) == (b"", bytes.fromhex(made.etag))
    assert not line.project.delete_object(BUCKET, "k")


def test_a_delete_whose_object_was_replaced(line: Line) -> None:
    """With a condition a replaced object is not touched, however often the delete is repeated."""
    made = line.project.upload(BUCKET, "k", b"small")
    line.world.project.upload(BUCKET, "k", b"newer")
    line.satellite.before = {"DeleteObject": 1}
    with pytest.raises(ConditionNotMatch):
        line.project.delete_object(BUCKET, "k", if_match=made.etag)
    assert line.world.project.download(BUCKET, "k").read() == b"newer"


def test_a_delete_by_a_key_that_may_not_look(line: Line) -> None:
    """Whoever may only delete is told that it may be done or not; nothing else is tried."""
    line.project.upload(BUCKET, "k", b"small")
    grant = line.project.access.restrict(read=False, list=False, write=False)
    session = Session(
        line.project.session.metainfo,
        bytes(grant.api_key),
        grant.encryption,
        nodes=line.world.store.nodes,
    )
    line.satellite.before = {"DeleteObject": 1}
    with pytest.raises(Unavailable, match="may be done or not"):
        Project(session, grant).delete_object(BUCKET, "k")
    assert line.satellite.calls.count("DeleteObject") == 1
    assert line.world.project.download(BUCKET, "k").read() == b"small"


def test_a_segment_whose_commit_was_never_answered(line: Line) -> None:
    """The satellite may hold it, so its pieces stay: the part can be committed or given up."""
    content = os.urandom(SEGMENT)
    for key in ("kept", "given up"):
        upload = line.project.begin_multipart(BUCKET, key)
        line.satellite.turns = {"CommitSegment": 4}
        with pytest.raises(Unavailable):
            upload.upload_part(1, content)
        assert [part.size for part in upload.parts()] == [SEGMENT]
        if key == "kept":
            upload.commit()
            assert line.world.project.download(BUCKET, key).read() == content
        else:
            upload.abort()
