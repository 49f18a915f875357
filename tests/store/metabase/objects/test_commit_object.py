"""Uploads: pending, segments, commit, abort, metadata, quota."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from calque.errors import (
    AlreadyExists,
    FailedPrecondition,
    InvalidInput,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
)
from calque.store.metabase.accounts.projects import create_project, set_limits
from calque.store.metabase.model.conditions import Conditions
from calque.store.metabase.model.records import Encryption, ObjectLocation, Position
from calque.store.metabase.objects.begin_object import BeginObject, begin_object
from calque.store.metabase.objects.commit_object import CommitObject, commit_object
from calque.store.metabase.objects.commit_segment import CommitSegment, commit_segment
from calque.store.metabase.objects.delete_object import AbortObject, abort_object
from calque.store.metabase.objects.get_object import get_object
from calque.store.metabase.objects.list_segments import ListSegments, list_segments
from calque.store.metabase.objects.update_metadata import UpdateMetadata, update_metadata
from tests.store.world import (
    ENCRYPTION,
    HOUR_US,
    INLINE,
    MULTIPART,
    REMOTE,
    SCHEME,
    THREE_REMOTE,
    Layout,
    World,
    in_parallel,
)


def test_a_pending_upload_is_invisible(world: World) -> None:
    """Until it is committed there is no object, and no quota is charged."""
    pending = world.begin(world.at("a"))
    world.segment(pending, Position(0, 0), REMOTE, b"x")
    with pytest.raises(NotFound, match="object does not exist in bucket 'first'"):
        get_object(world.database, world.at("a"))
    assert world.usage() == (0, 0, 0)


def test_offsets_follow_positions(world: World) -> None:
    """Parts committed out of order get their offsets at the commit."""
    record = world.upload("a", MULTIPART)
    rows = sorted((row[1], row[10]) for row in world.table("segments"))
    assert [offset for _, offset in rows] == [0, 100, 200, 300]
    assert (record.segment_count, record.total_plain_size) == (4, 400)
    assert record.fixed_segment_size == 100


def test_segments_that_differ_in_size(world: World) -> None:
    """A larger segment behind a smaller one makes the size varying."""
    pending = world.begin(world.at("a"))
    for number, size in enumerate((100, 50, 100)):
        world.segment(pending, Position(0, number), REMOTE, b"x" * size)
    done = commit_object(world.database, CommitObject(world.at("a"), pending.stream_id))
    assert done.object.fixed_segment_size == -1


def test_a_segment_sent_twice(world: World) -> None:
    """A segment at the same position replaces the first, whose pieces are freed."""
    pending = world.begin(world.at("a"))
    world.segment(pending, Position(0, 0), REMOTE, b"old")
    held = list(world.stored)
    world.segment(pending, Position(0, 0), INLINE, b"new")
    assert world.freed == held
    commit_object(world.database, CommitObject(world.at("a"), pending.stream_id))
    assert world.download(world.at("a")) == b"new"


def test_the_same_commit_segment_twice(world: World) -> None:
    """A retry of the very same call frees nothing, also when the upload was committed since."""
    pending = world.begin(world.at("a"))
    request = CommitSegment(
        pending.stream_id,
        Position(0, 0),
        os.urandom(12),
        os.urandom(48),
        116,
        100,
        root_piece_id=os.urandom(32),
        redundancy=SCHEME,
        alias_pieces=world.nodes.pack([(0, bytes([1]) * 32)]),
    )
    assert commit_segment(world.database, request) == []
    assert commit_segment(world.database, request) == []
    assert len(world.table("segments")) == 1
    commit_object(world.database, CommitObject(world.at("a"), pending.stream_id))
    rows = world.rows()
    assert commit_segment(world.database, request) == []
    assert world.rows() == rows
    with world.unchanged(NotFound, match="committed or aborted"):
        commit_segment(world.database, replace(request, root_piece_id=os.urandom(32)))


def test_segments_after_commit_or_abort(world: World) -> None:
    """An upload that is over takes no more segments."""
    committed = world.upload("a")
    with world.unchanged(NotFound, match="committed or aborted"):
        world.segment(committed, Position(0, 1), INLINE, b"late")
    with world.unchanged(NotFound, match="committed or aborted"):
        world.segment(committed, Position(0, 0), INLINE, b"instead")
    pending = world.begin(world.at("b"))
    abort_object(world.database, AbortObject(world.at("b"), pending.stream_id))
    with world.unchanged(NotFound):
        world.segment(pending, Position(0, 0), INLINE, b"late")


def test_abort(world: World) -> None:
    """An aborted upload frees its pieces; aborting again or a committed object is nothing."""
    pending = world.begin(world.at("a"))
    world.segment(pending, Position(0, 0), REMOTE, b"x")
    request = AbortObject(world.at("a"), pending.stream_id)
    world.free(abort_object(world.database, request).freed)
    assert world.empty()
    assert abort_object(world.database, request).object is None
    committed = world.upload("a")
    rows = world.rows()
    request = AbortObject(world.at("a"), committed.stream_id)
    assert abort_object(world.database, request).object is None
    assert world.rows() == rows


def test_commit_twice(world: World) -> None:
    """A repeated commit returns the same object."""
    record = world.upload("a", THREE_REMOTE)
    rows = world.rows()
    again = commit_object(world.database, CommitObject(world.at("a"), record.stream_id))
    assert again.object == record
    assert world.rows() == rows


def test_commit_replaces(world: World) -> None:
    """The object before goes, with its pieces, in the same transaction."""
    world.upload("a", THREE_REMOTE)
    held = set(world.stored)
    new = world.upload("a", Layout.of(INLINE))
    assert set(world.freed) == held
    assert [row[4] for row in world.table("objects")] == [new.stream_id]
    assert world.usage() == (new.total_encrypted_size, 1, 1)


def test_commit_conditions(world: World) -> None:
    """if_not_exists, if_match and the right to overwrite hold for uploads, too."""
    existing = world.upload("a")
    pending = world.begin(world.at("a"))
    request = CommitObject(world.at("a"), pending.stream_id)
    with world.unchanged(AlreadyExists):
        commit_object(world.database, replace(request, conditions=Conditions(if_not_exists=True)))
    with world.unchanged(PermissionDenied):
        commit_object(world.database, replace(request, may_overwrite=False))
    matching = Conditions(if_match=existing.stream_id)
    done = commit_object(world.database, replace(request, conditions=matching))
    world.free(done.freed)
    assert done.object.stream_id == pending.stream_id


def test_parallel_uploads_to_one_key(world: World) -> None:
    """Eight at once: one object remains, the pieces of the others are freed."""
    results = in_parallel([lambda: world.upload("a")] * 8)
    assert [result for result in results if isinstance(result, BaseException)] == []
    assert len(world.table("objects")) == 1
    assert len(world.freed) == 7
    assert world.download(world.at("a"))


def test_commit_of_another_upload(world: World) -> None:
    """A stream is committed only at the key where it began."""
    pending = world.begin(world.at("a"))
    with world.unchanged(NotFound):
        commit_object(world.database, CommitObject(world.at("b"), pending.stream_id))


def test_bucket_must_exist(world: World) -> None:
    """An upload into a bucket that is not there is refused by name."""
    with world.unchanged(NotFound, match="'nowhere'"):
        world.begin(world.at("a", "nowhere"))


def test_expiry_in_the_past(world: World) -> None:
    """An object cannot begin expired."""
    with world.unchanged(InvalidInput, match="past"):
        world.begin(world.at("a"), expires_at=world.clock() - HOUR_US)


def test_an_upload_that_expires_before_its_commit(world: World) -> None:
    """It takes the place of nothing: what is at the key stays as it is."""
    world.upload("a")
    upload = world.begin(world.at("a"), expires_at=world.clock() + HOUR_US)
    world.clock.advance(2 * HOUR_US)
    with world.unchanged(NotFound, match="expired"):
        commit_object(world.database, CommitObject(world.at("a"), upload.stream_id))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("encryption", Encryption(0, 4096)),
        ("encryption", Encryption(2, 0)),
        ("metadata", World.wrapped_metadata(b"x" * 9000)),
    ],
)
def test_malformed_begin(field: str, value: object) -> None:
    """Requests check themselves."""
    request = BeginObject(ObjectLocation(b"p" * 16, "first", b"a"), ENCRYPTION)
    with pytest.raises(InvalidInput):
        replace(request, **{field: value})


@pytest.mark.parametrize(
    "changes",
    [
        {"plain_size": -1},
        {"plain_size": 117},
        {"encrypted_size": 0},
        {"root_piece_id": b"short"},
        {"encrypted_key": b"short"},
        {"position": Position(-1, 0)},
        {"position": Position(0, 2**31)},
        {"redundancy": SCHEME._replace(required=9)},
        {"alias_pieces": None},
        {"inline_data": b"both"},
        {"encrypted_etag": b"e" * 1100},
        {"stream_id": b""},
    ],
)
def test_malformed_segments(changes: dict[str, object]) -> None:
    """Every field of a segment is checked."""
    fields: dict[str, object] = {
        "stream_id": b"s" * 16,
        "position": Position(0, 0),
        "encrypted_key_nonce": b"n" * 12,
        "encrypted_key": b"k" * 48,
        "encrypted_size": 116,
        "plain_size": 100,
        "root_piece_id": b"r" * 32,
        "redundancy": SCHEME,
        "alias_pieces": b"\1\0\1",
    }
    CommitSegment(**fields)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput):
        CommitSegment(**{**fields, **changes})  # type: ignore[arg-type]


def test_update_metadata(world: World) -> None:
    """Metadata of exactly the named object is replaced; nothing else changes."""
    record = world.upload("a", metadata=world.wrapped_metadata(b"old"))
    new = world.wrapped_metadata(b"new")
    changed = update_metadata(world.database, UpdateMetadata(world.at("a"), record.stream_id, new))
    assert changed.encrypted_metadata == b"new"
    assert get_object(world.database, world.at("a")) == changed
    with world.unchanged(FailedPrecondition):
        update_metadata(world.database, UpdateMetadata(world.at("a"), b"x" * 16, new))
    with world.unchanged(NotFound):
        update_metadata(world.database, UpdateMetadata(world.at("b"), record.stream_id, new))


def test_list_segments_of_an_upload(world: World) -> None:
    """The parts of a pending upload can be listed by its stream, by nobody else's."""
    pending = world.begin(world.at("a"))
    world.segment(pending, Position(5, 0), INLINE, b"x")
    page = list_segments(
        world.database, ListSegments(world.at("a"), pending.stream_id, pending=True)
    )
    assert [Position.decode(segment.position) for segment in page.segments] == [(5, 0)]
    with pytest.raises(NotFound):
        list_segments(world.database, ListSegments(world.at("b"), pending.stream_id, pending=True))


def test_pinned_stream(world: World) -> None:
    """A reader that pins the stream is told when the object was replaced."""
    old = world.upload("a")
    world.upload("a")
    with pytest.raises(FailedPrecondition, match="replaced"):
        list_segments(world.database, ListSegments(world.at("a"), old.stream_id))


def test_quota_of_bytes_and_segments(world: World) -> None:
    """A commit beyond the limit is refused, nothing is charged; deletes make room."""
    record = world.upload("a", THREE_REMOTE)
    size = record.total_encrypted_size
    set_limits(world.database, world.project_id, limit_bytes=2 * size, limit_segments=6)
    world.copy(world.at("a"), world.at("b"))
    with world.unchanged(ResourceExhausted, match="bytes"):
        world.copy(world.at("a"), world.at("c"))
    world.copy(world.at("a"), world.at("b"))
    world.delete(world.at("b"))
    world.copy(world.at("a"), world.at("c"))
    set_limits(world.database, world.project_id, limit_bytes=None, limit_segments=6)
    with world.unchanged(ResourceExhausted, match="segments"):
        world.copy(world.at("a"), world.at("d"))
    set_limits(world.database, world.project_id, limit_bytes=None, limit_segments=None)
    world.copy(world.at("a"), world.at("d"))


def test_quota_is_not_charged_before_the_commit(world: World) -> None:
    """A full project may begin and upload, and is refused at the commit."""
    set_limits(world.database, world.project_id, limit_bytes=10, limit_segments=None)
    pending = world.begin(world.at("a"))
    world.segment(pending, Position(0, 0), REMOTE, b"x" * 100)
    with world.unchanged(ResourceExhausted, match="may hold 10 bytes and would hold 116"):
        commit_object(world.database, CommitObject(world.at("a"), pending.stream_id))


def test_lowered_limit_keeps_what_is_there(world: World) -> None:
    """Below what is used, deletes still pass and uploads do not."""
    world.upload("a")
    world.upload("b")
    set_limits(world.database, world.project_id, limit_bytes=1, limit_segments=None)
    world.delete(world.at("a"))
    with world.unchanged(ResourceExhausted):
        world.copy(world.at("b"), world.at("c"))


def test_projects_are_apart(world: World) -> None:
    """A key of one project never reaches another's."""
    world.upload("a")
    other = create_project(world.database, "other").project_id
    with pytest.raises(NotFound, match="bucket 'first'"):
        get_object(world.database, ObjectLocation(other, "first", b"a"))
    with pytest.raises(NotFound):
        begin_object(world.database, BeginObject(ObjectLocation(other, "first", b"a"), ENCRYPTION))
