"""Finish of a copy: everything it refuses, and that a refusal leaves every row as it was."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from calque.errors import FailedPrecondition, InvalidInput, NotFound, PermissionDenied
from calque.store.metabase.copies.begin_copy import BeginCopy, begin_copy
from calque.store.metabase.copies.operations import Operation
from calque.store.metabase.model.checks import MAX_METADATA
from calque.store.metabase.model.packed_keys import PackedKeys
from calque.store.metabase.model.records import NO_METADATA, SegmentKey, WrappedMetadata
from calque.store.metabase.objects.delete_batch import (
    BucketDeleted,
    DeleteBucket,
    delete_bucket,
    delete_expired,
)
from calque.store.metabase.objects.get_object import get_object
from calque.store.metabase.objects.list_objects import ListObjects, list_objects
from tests.store.world import HOUR_US, THREE_REMOTE, World


def _keys(*positions: int) -> list[SegmentKey]:
    return [SegmentKey(position, os.urandom(12), os.urandom(48)) for position in positions]


@pytest.mark.parametrize(
    ("metadata", "named"),
    [
        (WrappedMetadata(None, b"data", None), "without its key and nonce"),
        (WrappedMetadata(None, b"data", b"k" * 48), "without its key and nonce"),
        (WrappedMetadata(None, None, b"k" * 48), "without its nonce"),
        (WrappedMetadata(b"n" * 12, None, None), "without its key"),
        (WrappedMetadata(b"n" * 11, b"data", b"k" * 48), "nonce has 11 bytes"),
        (WrappedMetadata(b"n" * 12, b"data", b"k" * 47), "key has 47 bytes"),
        (WrappedMetadata(b"n" * 12, b"d" * (MAX_METADATA + 1), b"k" * 48), "limit is 8208"),
    ],
)
def test_metadata_that_does_not_fit_together(
    world: World, metadata: WrappedMetadata, named: str
) -> None:
    """Metadata, key and nonce come together, with their sizes."""
    world.upload("a")
    with world.unchanged(InvalidInput, match=named):
        world.copy(world.at("a"), world.at("b"), metadata=metadata, override_metadata=True)


def test_metadata_of_exactly_the_limit(world: World) -> None:
    """The largest metadata passes."""
    world.upload("a")
    largest = world.wrapped_metadata(b"m" * MAX_METADATA)
    copy = world.copy(world.at("a"), world.at("b"), metadata=largest, override_metadata=True)
    assert copy.encrypted_metadata == b"m" * MAX_METADATA


@pytest.mark.parametrize("size", [(11, 48), (13, 48), (12, 47), (12, 49), (0, 48), (12, 0)])
def test_wrapped_keys_of_the_wrong_length(size: tuple[int, int]) -> None:
    """A wrapped key has 48 bytes and its nonce 12."""
    with pytest.raises(InvalidInput, match="encrypted key"):
        PackedKeys.of([SegmentKey(0, os.urandom(size[0]), os.urandom(size[1]))])


def test_duplicate_positions() -> None:
    """The same position twice is refused by name."""
    with pytest.raises(InvalidInput, match="0/1 comes twice"):
        PackedKeys.of(_keys(0, 1, 1))


@pytest.mark.parametrize(("positions", "count"), [((0, 1), 2), ((0, 1, 2, 3), 4), ((), 0)])
def test_wrong_number_of_keys(world: World, positions: tuple[int, ...], count: int) -> None:
    """One key too few or too many: the message gives both counts."""
    world.upload("a", THREE_REMOTE)
    with world.unchanged(InvalidInput, match=f"{count} segment keys.*3 segments"):
        world.copy(world.at("a"), world.at("b"), keys=PackedKeys.of(_keys(*positions)))


def test_wrong_positions(world: World) -> None:
    """The right number at the wrong places is refused."""
    world.upload("a", THREE_REMOTE)
    with world.unchanged(InvalidInput, match="no segment at position 0/3"):
        world.copy(world.at("a"), world.at("b"), keys=PackedKeys.of(_keys(0, 1, 3)))


def test_missing_new_bucket_and_key(world: World) -> None:
    """A destination without bucket or key is refused."""
    world.upload("a")
    request = world.finishing(world.at("a"), world.at("b"))
    with pytest.raises(InvalidInput, match="new bucket is missing"):
        replace(request, target=request.target._replace(bucket=""))
    with pytest.raises(InvalidInput, match="new encrypted object key is missing"):
        replace(request, target=request.target._replace(key=b""))


def test_key_of_metadata_not_rewrapped(world: World) -> None:
    """Metadata that stays must come with its re-wrapped key, else nobody could read it."""
    world.upload("a", metadata=world.wrapped_metadata())
    with world.unchanged(InvalidInput, match="re-wrapped metadata key of the source is missing"):
        world.copy(world.at("a"), world.at("b"), metadata=NO_METADATA)


def test_key_for_metadata_that_is_not_there(world: World) -> None:
    """A source without metadata takes no metadata key."""
    world.upload("a")
    with world.unchanged(InvalidInput, match="there is none"):
        world.copy(
            world.at("a"), world.at("b"), metadata=WrappedMetadata(b"n" * 12, None, b"k" * 48)
        )


def test_new_metadata_without_the_flag(world: World) -> None:
    """New metadata needs override_metadata."""
    world.upload("a")
    with world.unchanged(InvalidInput, match="without override_metadata"):
        world.copy(world.at("a"), world.at("b"), metadata=world.wrapped_metadata())


def test_destination_bucket_deleted_after_begin(world: World) -> None:
    """The destination bucket is looked at again in the commit."""
    world.upload("a")
    request = world.finishing(world.at("a"), world.at("b", "second"))
    steps = list(delete_bucket(world.database, DeleteBucket(world.project_id, "second")))
    assert isinstance(steps[-1], BucketDeleted)
    with world.unchanged(NotFound, match="destination bucket 'second'"):
        world.finish(request)


def test_source_deleted_after_begin(world: World) -> None:
    """A source that went away is a failed precondition."""
    world.upload("a")
    request = world.finishing(world.at("a"), world.at("b"))
    world.delete(world.at("a"))
    with world.unchanged(FailedPrecondition, match="deleted"):
        world.finish(request)


def test_source_replaced_after_begin(world: World) -> None:
    """A source that was uploaded anew is a failed precondition."""
    world.upload("a")
    request = world.finishing(world.at("a"), world.at("b"))
    world.upload("a")
    with world.unchanged(FailedPrecondition, match="replaced"):
        world.finish(request)


def test_source_moved_after_begin(world: World) -> None:
    """A source that was renamed is a failed precondition."""
    world.upload("a")
    request = world.finishing(world.at("a"), world.at("b"))
    world.move(world.at("a"), world.at("c"))
    with world.unchanged(FailedPrecondition):
        world.finish(request)


def test_source_expired_after_begin(world: World) -> None:
    """A source that expired is a failed precondition."""
    world.upload("a", expires_at=world.clock() + HOUR_US)
    request = world.finishing(world.at("a"), world.at("b"))
    world.clock.advance(2 * HOUR_US)
    with world.unchanged(FailedPrecondition, match="expired"):
        world.finish(request)


def test_operation_out_of_time(world: World) -> None:
    """An operation ends at its expiry."""
    world.upload("a")
    request = world.finishing(world.at("a"), world.at("b"))
    world.clock.stop_at(request.operation.expires_at - 1)
    with world.unchanged(InvalidInput, match="segment keys"):
        world.finish(replace(request, keys=PackedKeys()))
    world.clock.stop_at(request.operation.expires_at)
    with world.unchanged(FailedPrecondition, match="time of this operation is over"):
        world.finish(request)


def test_the_moment_of_expiry(world: World) -> None:
    """At its end, to the microsecond, an object is gone for everybody; before it, for nobody."""
    end = world.clock() + HOUR_US
    world.upload("a", expires_at=end)
    request = world.finishing(world.at("a"), world.at("late"))
    listing = ListObjects(world.project_id, "first")
    world.clock.stop_at(end - 1)
    world.copy(world.at("a"), world.at("b"))
    assert len(list_objects(world.database, listing).items) == 2
    assert list(delete_expired(world.database)) == []
    world.clock.stop_at(end)
    with world.unchanged(FailedPrecondition, match="expired"):
        world.finish(request)
    with world.unchanged(NotFound):
        begin_copy(world.database, BeginCopy(world.at("a"), world.at("c")))
    with world.unchanged(NotFound):
        get_object(world.database, world.at("a"))
    assert list_objects(world.database, listing).items == []
    assert sum(batch.deleted for batch in delete_expired(world.database)) == 2


def test_operation_id_of_the_wrong_size(world: World) -> None:
    """An operation id has 16 bytes."""
    with pytest.raises(InvalidInput, match="operation id"):
        Operation(b"short", world.project_id, 1)


def test_other_project(world: World) -> None:
    """A copy stays within its project."""
    world.upload("a")
    foreign = world.at("b")._replace(project_id=os.urandom(16))
    with world.unchanged(InvalidInput, match="different projects"):
        replace(world.finishing(world.at("a"), world.at("b")), target=foreign)


def test_placement_is_checked_at_finish(world: World) -> None:
    """Pieces that may not serve the destination's placement are not copied there."""
    world.upload("a")
    world.bucket("elsewhere", placement=7)
    with world.unchanged(FailedPrecondition, match="placement"):
        world.copy(world.at("a"), world.at("b", "elsewhere"))


def test_write_without_delete_may_not_overwrite(world: World) -> None:
    """A caller that may not delete leaves both objects intact."""
    world.upload("a")
    world.upload("b")
    with world.unchanged(PermissionDenied, match="may not overwrite"):
        world.copy(world.at("a"), world.at("b"), may_overwrite=False)
