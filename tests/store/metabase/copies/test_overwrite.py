"""A copy onto a key where something is."""

from __future__ import annotations

import pytest

from calque.errors import AlreadyExists, ConditionNotMatch, InvalidInput, PermissionDenied
from calque.store.metabase.model.conditions import Conditions
from calque.store.metabase.model.records import Position
from calque.store.metabase.model.schema import PENDING
from calque.store.metabase.objects.commit_object import CommitObject, commit_object
from tests.store.world import REMOTE, THREE_REMOTE, WITH_TAIL, World


def test_onto_another_object(world: World) -> None:
    """Its rows go and its pieces are reported, in the same transaction."""
    old = world.upload("b", THREE_REMOTE)
    held = set(world.stored)
    world.upload("a", WITH_TAIL)
    copy = world.copy(world.at("a"), world.at("b"))
    assert set(world.freed) == held
    assert all(row[4] != old.stream_id for row in world.table("objects"))
    assert all(row[0] != old.stream_id for row in world.table("segments"))
    assert world.download(world.at("b")) == world.download(world.at("a"))
    assert copy.version > old.version


def test_onto_an_original_that_has_copies(world: World) -> None:
    """The oldest copy is promoted; everything still downloads."""
    world.upload("b", THREE_REMOTE)
    first = world.copy(world.at("b"), world.at("c"))
    second = world.copy(world.at("b"), world.at("d"))
    old = world.download(world.at("b"))
    source = world.upload("a")
    copy = world.copy(world.at("a"), world.at("b"))
    assert world.ancestors() == {
        second.stream_id: first.stream_id,
        copy.stream_id: source.stream_id,
    }
    assert world.freed == []
    assert world.download(world.at("c")) == world.download(world.at("d")) == old
    assert world.download(world.at("b")) == world.download(world.at("a")) != old


def test_back_onto_its_own_ancestor(world: World) -> None:
    """The source becomes the original and the ancestor's key holds a copy of it."""
    world.upload("a", WITH_TAIL)
    body = world.download(world.at("a"))
    source = world.copy(world.at("a"), world.at("b"))
    copy = world.copy(world.at("b"), world.at("a"))
    assert world.ancestors() == {copy.stream_id: source.stream_id}
    assert world.download(world.at("a")) == world.download(world.at("b")) == body
    assert world.freed == []


def test_back_onto_its_ancestor_with_an_older_sibling(world: World) -> None:
    """The older sibling inherits; source and new copy both point at it."""
    world.upload("a", THREE_REMOTE)
    body = world.download(world.at("a"))
    sibling = world.copy(world.at("a"), world.at("s"))
    source = world.copy(world.at("a"), world.at("b"))
    copy = world.copy(world.at("b"), world.at("a"))
    assert world.ancestors() == {
        source.stream_id: sibling.stream_id,
        copy.stream_id: sibling.stream_id,
    }
    for key in ("a", "b", "s"):
        assert world.download(world.at(key)) == body


def test_an_original_onto_its_own_copy(world: World) -> None:
    """The old copy's reference goes, the new one's comes."""
    source = world.upload("a", WITH_TAIL)
    world.copy(world.at("a"), world.at("b"))
    copy = world.copy(world.at("a"), world.at("b"))
    assert world.ancestors() == {copy.stream_id: source.stream_id}
    assert world.freed == []


def test_pending_uploads_survive(world: World) -> None:
    """Uploads pending at the destination can still be committed afterwards."""
    pending = world.begin(world.at("b"))
    world.segment(pending, Position(0, 0), REMOTE, b"p" * 100)
    world.upload("a")
    world.copy(world.at("a"), world.at("b"))
    assert [row[4] for row in world.table("objects") if row[7] == PENDING] == [pending.stream_id]
    done = commit_object(world.database, CommitObject(world.at("b"), pending.stream_id))
    world.free(done.freed)
    assert world.download(world.at("b")) == b"p" * 100
    assert world.ancestors() == {}


def test_write_only_caller(world: World) -> None:
    """A caller without the right to delete is denied and both objects are intact."""
    world.upload("a")
    world.upload("b")
    with world.unchanged(PermissionDenied):
        world.copy(world.at("a"), world.at("b"), may_overwrite=False)


def test_expired_destination_is_no_obstacle(world: World) -> None:
    """What has expired is not there any more, but its pieces are freed."""
    world.upload("b", expires_at=world.clock() + 1_000_000)
    held = set(world.stored)
    world.clock.advance(2_000_000)
    world.upload("a")
    world.copy(
        world.at("a"),
        world.at("b"),
        may_overwrite=False,
        conditions=Conditions(if_not_exists=True),
    )
    assert set(world.freed) == held


def test_if_not_exists(world: World) -> None:
    """The first passes, the second fails, and it passes again after a delete."""
    world.upload("a")
    only_new = Conditions(if_not_exists=True)
    world.copy(world.at("a"), world.at("b"), conditions=only_new)
    with world.unchanged(AlreadyExists):
        world.copy(world.at("a"), world.at("b"), conditions=only_new)
    world.delete(world.at("b"))
    world.copy(world.at("a"), world.at("b"), conditions=only_new)


def test_if_match(world: World) -> None:
    """The destination must be the object that is named."""
    world.upload("a")
    target = world.upload("b")
    with world.unchanged(ConditionNotMatch):
        world.copy(world.at("a"), world.at("b"), conditions=Conditions(if_match=b"x" * 16))
    with world.unchanged(ConditionNotMatch):
        world.copy(world.at("a"), world.at("c"), conditions=Conditions(if_match=b"x" * 16))
    world.copy(world.at("a"), world.at("b"), conditions=Conditions(if_match=target.stream_id))


def test_source_conditions(world: World) -> None:
    """The source must be the object that is named, and not newer than the time given."""
    source = world.upload("a")
    with world.unchanged(ConditionNotMatch, match="source"):
        world.copy(world.at("a"), world.at("b"), conditions=Conditions(source_if_match=b"x" * 16))
    late = Conditions(source_if_unmodified_since=source.created_at - 1)
    with world.unchanged(ConditionNotMatch, match="modified"):
        world.copy(world.at("a"), world.at("b"), conditions=late)
    both = Conditions(
        source_if_match=source.stream_id, source_if_unmodified_since=source.created_at
    )
    world.copy(world.at("a"), world.at("b"), conditions=both)


def test_contradicting_conditions() -> None:
    """if_not_exists and if_match cannot both be meant."""
    with pytest.raises(InvalidInput, match="contradict"):
        Conditions(if_not_exists=True, if_match=b"x" * 16)


def test_a_move_without_the_right_to_delete(world: World) -> None:
    """A move replaces nothing for a caller that may not delete at the destination."""
    world.upload("a")
    world.upload("b")
    with world.unchanged(PermissionDenied, match="may not overwrite"):
        world.move(world.at("a"), world.at("b"), may_overwrite=False)
    world.move(world.at("a"), world.at("c"), may_overwrite=False)


def test_onto_itself_keeps_conditions(world: World) -> None:
    """An object copied onto itself is its own destination: conditions and rights hold for it."""
    source, new = world.upload("a"), world.wrapped_metadata(b"new")
    itself = (world.at("a"), world.at("a"))
    replaced = {"metadata": new, "override_metadata": True}
    for changes in ({}, replaced):
        with world.unchanged(AlreadyExists):
            world.copy(*itself, conditions=Conditions(if_not_exists=True), **changes)
        with world.unchanged(ConditionNotMatch):
            world.copy(*itself, conditions=Conditions(if_match=b"x" * 16), **changes)
        with world.unchanged(ConditionNotMatch):
            world.copy(*itself, conditions=Conditions(source_if_match=b"x" * 16), **changes)
    with world.unchanged(PermissionDenied, match="may not overwrite"):
        world.copy(*itself, may_overwrite=False, **replaced)
    world.copy(*itself, conditions=Conditions(if_match=source.stream_id), **replaced)
