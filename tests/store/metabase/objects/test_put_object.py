"""A small object in one transaction: begin, segment and commit."""

from __future__ import annotations

import os

import pytest

from calque.errors import AlreadyExists, ConditionNotMatch, InvalidInput, NotFound, PermissionDenied
from calque.store.metabase.model.conditions import Conditions
from calque.store.metabase.model.records import ObjectLocation, ObjectRecord, Position
from calque.store.metabase.objects.begin_object import BeginObject
from calque.store.metabase.objects.commit_segment import CommitSegment
from calque.store.metabase.objects.put_object import PutObject, put_object
from tests.store.world import ENCRYPTION, HOUR_US, THREE_REMOTE, World


def _request(
    location: ObjectLocation, body: bytes = b"small", expires_at: int | None = None, **more: object
) -> PutObject:
    stream_id = os.urandom(16)
    segment = None
    if body:
        segment = CommitSegment(
            stream_id,
            Position(0, 0),
            os.urandom(12),
            os.urandom(48),
            encrypted_size=len(body) + 16,
            plain_size=len(body),
            inline_data=body + b"." * 16,
        )
    begin = BeginObject(location, ENCRYPTION, expires_at, World.wrapped_metadata())
    return PutObject(begin, stream_id, segment, **more)  # type: ignore[arg-type]


def _put(world: World, key: str, body: bytes = b"small", **more: object) -> ObjectRecord:
    done = put_object(world.database, _request(world.at(key), body, **more))  # type: ignore[arg-type]
    world.free(done.freed)
    return done.object


@pytest.mark.parametrize("body", [b"", b"x", b"y" * 4000])
def test_it_is_an_object_like_others(world: World, body: bytes) -> None:
    """It is read, copied, moved, overwritten and deleted as one that was uploaded in steps."""
    made = _put(world, "k", body)
    assert (made.segment_count, made.total_plain_size) == (1 if body else 0, len(body))
    assert world.download(world.at("k")) == body
    world.copy(world.at("k"), world.at("copy"))
    world.move(world.at("k"), world.at("moved", "second"))
    for place in (world.at("copy"), world.at("moved", "second")):
        assert world.download(place) == body
        world.delete(place)
    assert world.empty()


def test_what_was_there_is_replaced(world: World) -> None:
    """An original with a copy gives way, and the copy keeps its bytes; versions go on."""
    world.upload("k", THREE_REMOTE)
    body = world.download(world.at("k"))
    world.copy(world.at("k"), world.at("copy"))
    world.begin(world.at("k"))
    assert _put(world, "k").version == 3
    assert world.download(world.at("copy")) == body
    world.delete(world.at("copy"))
    assert world.stored == {}


def test_a_repeat_gives_the_same_object(world: World) -> None:
    """Also under a condition that its own first success would break; not at another key."""
    request = _request(world.at("k"), conditions=Conditions(if_not_exists=True))
    first = put_object(world.database, request)
    again = put_object(world.database, request)
    assert (again.object, again.is_new) == (first.object, False)
    begin = BeginObject(world.at("other"), ENCRYPTION)
    with world.unchanged(InvalidInput, match="request id"):
        put_object(world.database, PutObject(begin, request.stream_id, None))


def test_what_is_refused(world: World) -> None:
    """Conditions, rights, a missing bucket and an expiry that is over leave every row as it was."""
    there = world.upload("k")
    cases = [
        (AlreadyExists, _request(world.at("k"), conditions=Conditions(if_not_exists=True))),
        (ConditionNotMatch, _request(world.at("k"), conditions=Conditions(if_match=b"1" * 16))),
        (
            ConditionNotMatch,
            _request(world.at("new"), conditions=Conditions(if_match=there.stream_id)),
        ),
        (PermissionDenied, _request(world.at("k"), may_overwrite=False)),
        (NotFound, _request(world.at("k", "nowhere"))),
        (InvalidInput, _request(world.at("k"), expires_at=world.clock() - HOUR_US)),
    ]
    for error, request in cases:
        with world.unchanged(error):
            put_object(world.database, request)
