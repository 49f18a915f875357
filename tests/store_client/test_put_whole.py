"""Objects of one segment: their pieces, then one call; nothing is pending meanwhile."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from calque.errors import AlreadyExists, CalqueError, ConditionNotMatch, InvalidInput, NotFound
from calque.store.metainfo.pb import metainfo_pb2 as pb
from tests.store_client.world import BUCKET, INLINE, OTHER, SEGMENT, World


@pytest.fixture
def calls(world: World, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the satellite is asked."""
    made: list[str] = []
    carry_out = world.store.endpoint.call

    def call(name: str, request: Any) -> Any:
        made.append(name)
        return carry_out(name, request)

    assert world.project.session.limits
    monkeypatch.setattr(world.store.endpoint, "call", call)
    return made


@pytest.mark.parametrize("size", [INLINE + 1, SEGMENT])
def test_one_call_behind_the_pieces(world: World, calls: list[str], size: int) -> None:
    """It is read, copied, replaced and deleted as one that was uploaded in steps."""
    content = os.urandom(size)
    made = world.project.upload(BUCKET, "k", content, metadata=lambda: {"known": "late"})
    assert calls == ["BeginSegment", "PutObject"]
    assert made == world.project.stat(BUCKET, "k")
    assert (made.segments, dict(made.metadata)) == (1, {"known": "late"})
    world.project.copy_object(BUCKET, "k", OTHER, "copy")
    again = world.project.upload(BUCKET, "k", content[::-1], if_match=made.etag)
    assert again.version > made.version
    assert world.project.download(OTHER, "copy").read() == content
    assert world.project.download(BUCKET, "k").read() == content[::-1]
    world.check()
    for place in ((BUCKET, "k"), (OTHER, "copy")):
        world.project.delete_object(*place)
    assert world.piece_count() == 0


def test_more_than_a_segment_goes_in_steps(world: World, calls: list[str]) -> None:
    """What does not fit is begun, and committed in the end."""
    world.project.upload(BUCKET, "k", os.urandom(SEGMENT + 1))
    assert calls[0] == "BeginObject"
    assert "PutObject" not in calls


def test_what_is_refused_leaves_no_piece(world: World) -> None:
    """Conditions, a bucket that is gone, metadata that fails, a source that breaks off."""
    there = world.project.upload(BUCKET, "k", b"x" * SEGMENT)
    before = world.piece_count()
    body = os.urandom(SEGMENT)

    def fail() -> dict[str, str]:
        raise InvalidInput("the bytes are not those that were promised")

    def break_off() -> Iterator[bytes]:
        yield body[:500]
        raise InvalidInput("the body is shorter than was announced")

    past = datetime.now(UTC) - timedelta(hours=1)
    cases: list[tuple[type[CalqueError], str, Any, dict[str, Any]]] = [
        (AlreadyExists, BUCKET, body, {"if_not_exists": True}),
        (ConditionNotMatch, BUCKET, body, {"if_match": "0" * 32}),
        (NotFound, "nowhere", body, {}),
        (InvalidInput, BUCKET, body, {"expires": past}),
        (InvalidInput, BUCKET, body, {"metadata": fail}),
        (InvalidInput, BUCKET, break_off(), {}),
    ]
    for error, bucket, data, more in cases:
        with pytest.raises(error):
            world.project.upload(bucket, "k", data, **more)
    assert world.project.stat(BUCKET, "k") == there
    assert not list(world.project.list_pending(BUCKET))
    assert world.piece_count() == before
    world.check()


def test_it_expires(world: World) -> None:
    """The expiry that the segment was begun with is the object's."""
    soon = datetime.now(UTC) + timedelta(hours=1)
    made = world.project.upload(BUCKET, "k", os.urandom(SEGMENT), expires=soon)
    assert made.expires is not None
    assert abs(made.expires - soon) < timedelta(milliseconds=1)
    world.clock.ahead = timedelta(hours=2)
    with pytest.raises(NotFound):
        world.project.stat(BUCKET, "k")


def test_segments_of_uploads_and_of_none(world: World) -> None:
    """Neither call takes a segment that was begun for the other."""
    session = world.project.session
    located = session.locate(BUCKET, "k")
    upload = world.project.begin_multipart(BUCKET, "k")
    position = pb.SegmentPosition(part_number=0, index=0)
    of_upload = session.metainfo.begin_segment(
        pb.SegmentBeginRequest(header=session.header, upload_id=upload.id, position=position)
    )
    of_none = session.metainfo.begin_segment(
        pb.SegmentBeginRequest(
            header=session.header,
            position=position,
            bucket=BUCKET,
            encrypted_object_key=located.encrypted,
            encryption_parameters=session.settings.encryption.message(),
        )
    )
    size = session.settings.encryption.encrypted_size(SEGMENT)

    def describe(begun: pb.SegmentBeginResponse) -> pb.SegmentCommitRequest:
        return pb.SegmentCommitRequest(
            header=session.header,
            segment_id=begun.segment_id,
            encrypted_key_nonce=bytes(12),
            encrypted_key=bytes(48),
            encrypted_size=size,
            plain_size=SEGMENT,
            pieces=[pb.Piece(number=each.number, node_id=each.node.id) for each in begun.pieces],
        )

    with pytest.raises(InvalidInput, match="without an upload"):
        session.metainfo.commit_segment(describe(of_none))
    with pytest.raises(InvalidInput, match="belongs to an upload"):
        session.metainfo.put_object(
            pb.ObjectPutRequest(header=session.header, segment=describe(of_upload))
        )
    upload.abort()
    assert world.keys() == []
