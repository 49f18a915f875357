"""Deletes: copies, originals, promotion, buckets; pieces are reported exactly once."""

from __future__ import annotations

import pytest
from sqlalchemy import update

from calque.errors import ConditionNotMatch, FailedPrecondition, NotFound
from calque.store.metabase.model.records import ObjectRecord, Position, SegmentRecord
from calque.store.metabase.model.schema import objects, segments
from calque.store.metabase.objects.commit_object import CommitObject, commit_object
from calque.store.metabase.objects.delete_batch import BucketDeleted, DeleteBucket, delete_bucket
from calque.store.metabase.objects.delete_object import DeleteObject, delete_object
from calque.store.metabase.objects.list_segments import ListSegments, list_segments
from tests.store.world import (
    EMPTY,
    HOUR_US,
    ONE_REMOTE,
    REMOTE,
    SCHEME,
    THREE_REMOTE,
    WITH_TAIL,
    Layout,
    World,
    in_parallel,
)

SIZES = {"no segment": EMPTY, "one segment": ONE_REMOTE, "three segments": THREE_REMOTE}


@pytest.fixture(params=SIZES.values(), ids=SIZES.keys())
def layout(request: pytest.FixtureRequest) -> Layout:
    """Objects with 0, 1 and 3 segments."""
    result: Layout = request.param
    return result


def _pieces(world: World) -> dict[bytes, bytes | None]:
    return {row[0]: row[14] for row in world.table("segments")}


def test_a_copy(world: World, layout: Layout) -> None:
    """The original is intact and nothing is reported."""
    world.upload("a", layout)
    before = world.rows()
    world.copy(world.at("a"), world.at("b"))
    world.delete(world.at("b"))
    after = world.rows()
    for table in ("objects", "segments", "segment_copies", "project_usage"):
        assert after[table] == before[table]
    assert world.freed == []


def test_one_of_two_copies(world: World, layout: Layout) -> None:
    """The other copy still points at the original."""
    source = world.upload("a", layout)
    world.copy(world.at("a"), world.at("b"))
    other = world.copy(world.at("a"), world.at("c"))
    world.delete(world.at("b"))
    assert world.ancestors() == ({other.stream_id: source.stream_id} if layout.parts else {})
    assert world.freed == []


def test_the_original_of_one_copy(world: World, layout: Layout) -> None:
    """The copy owns the pieces and the reference row is gone."""
    world.upload("a", layout)
    body = world.download(world.at("a"))
    world.copy(world.at("a"), world.at("b"))
    world.delete(world.at("a"))
    assert world.ancestors() == {}
    assert all(_pieces(world).values())
    assert world.download(world.at("b")) == body
    assert world.freed == []


def test_the_original_of_two_copies(world: World, layout: Layout) -> None:
    """The oldest copy is promoted, the other re-pointed."""
    world.upload("a", layout)
    body = world.download(world.at("a"))
    oldest = world.copy(world.at("a"), world.at("b"))
    other = world.copy(world.at("a"), world.at("c"))
    world.delete(world.at("a"))
    assert world.ancestors() == ({other.stream_id: oldest.stream_id} if layout.parts else {})
    assert world.download(world.at("b")) == world.download(world.at("c")) == body


def test_copies_of_the_same_moment(world: World) -> None:
    """Of copies as old as each other the one with the smaller stream id is promoted."""
    world.upload("a")
    copies = {world.copy(world.at("a"), world.at(f"copy{n}")).stream_id for n in range(5)}
    with world.database.engine.begin() as connection:
        connection.execute(update(objects).values(created_at=world.clock()))
    world.delete(world.at("a"))
    first = min(copies)
    assert world.ancestors() == dict.fromkeys(copies - {first}, first)


def test_original_promoted_last(world: World, layout: Layout) -> None:
    """One after the other: the pieces are reported exactly once, all tables are empty."""
    world.upload("a", layout)
    held = sorted(world.stored)
    for key in ("b", "c"):
        world.copy(world.at("a"), world.at(key))
    for key in ("a", "b"):
        world.delete(world.at(key))
        assert world.freed == []
    world.delete(world.at("c"))
    assert sorted(world.freed) == held
    assert world.empty()


def test_copies_with_an_inline_tail(world: World) -> None:
    """The tail stays each one's own; the promoted copy keeps it."""
    world.upload("a", WITH_TAIL)
    body = world.download(world.at("a"))
    world.copy(world.at("a"), world.at("b"))
    world.delete(world.at("a"))
    assert world.download(world.at("b")) == body
    world.delete(world.at("b"))
    assert world.empty()


def test_the_bucket_of_the_original(world: World) -> None:
    """Copies in another bucket survive."""
    world.upload("a", THREE_REMOTE)
    body = world.download(world.at("a"))
    for key in ("b", "c"):
        world.copy(world.at("a"), world.at(key, "second"))
    world.delete_bucket("first")
    assert world.download(world.at("b", "second")) == body
    assert world.download(world.at("c", "second")) == body
    assert world.freed == []
    assert [row[1] for row in world.table("buckets")] == ["second"]


def test_the_bucket_of_the_copies(world: World) -> None:
    """The original is unchanged."""
    world.upload("a", THREE_REMOTE)
    before = world.rows()
    for key in ("b", "c"):
        world.copy(world.at("a"), world.at(key, "second"))
    world.delete_bucket("second")
    after = world.rows()
    for table in ("objects", "segments", "segment_copies", "project_usage"):
        assert after[table] == before[table]


@pytest.mark.parametrize("batch", [1, 2, 100])
def test_a_bucket_holding_an_original_and_its_copies(world: World, batch: int) -> None:
    """Everything goes, in any batch size, and each piece is reported once."""
    world.upload("b", THREE_REMOTE)
    world.begin(world.at("pending"))
    for key in ("a", "c", "d"):
        world.copy(world.at("b"), world.at(key))
    held = sorted(world.stored)
    world.delete_bucket("first", batch)
    assert sorted(world.freed) == held
    assert world.empty()


def test_a_bucket_that_is_not_empty(world: World) -> None:
    """Without being asked for everything, only an empty bucket goes."""
    world.upload("a")
    with world.unchanged(FailedPrecondition, match="not empty"):
        list(delete_bucket(world.database, DeleteBucket(world.project_id, "first")))
    with world.unchanged(NotFound, match="'nowhere'"):
        list(delete_bucket(world.database, DeleteBucket(world.project_id, "nowhere")))


def test_uploads_go_with_their_bucket(world: World) -> None:
    """Uploads under way and what has expired are no hindrance: they go in one transaction."""
    upload = world.begin(world.at("pending"))
    world.segment(upload, Position(0, 0), REMOTE, b"x" * 100)
    world.begin(world.at("other"))
    world.upload("expired", expires_at=world.clock() + HOUR_US)
    world.copy(world.at("expired"), world.at("copy"))
    world.copy(world.at("expired"), world.at("elsewhere", "second"))
    world.clock.advance(2 * HOUR_US)
    (step,) = delete_bucket(world.database, DeleteBucket(world.project_id, "first"))
    assert isinstance(step, BucketDeleted)
    assert step.along.deleted == 4
    world.free(step.along.freed)
    assert len(world.stored) == 1
    world.delete_bucket("second")
    assert world.empty()


def test_an_upload_that_races_its_bucket(world: World) -> None:
    """Either the commit comes first and the bucket stays, or the bucket and the upload are gone."""
    for _ in range(8):
        upload = world.begin(world.at("k"))
        world.segment(upload, Position(0, 0), REMOTE, b"x" * 100)

        def commit(upload: ObjectRecord = upload) -> None:
            world.free(
                commit_object(world.database, CommitObject(world.at("k"), upload.stream_id)).freed
            )

        def drop() -> None:
            (step,) = delete_bucket(world.database, DeleteBucket(world.project_id, "first"))
            assert isinstance(step, BucketDeleted)
            world.free(step.along.freed)

        committed, dropped = in_parallel([commit, drop], threads=2)
        assert (committed is None) != (dropped is None)
        if committed is None:
            assert isinstance(dropped, FailedPrecondition)
            world.delete(world.at("k"))
        else:
            assert isinstance(committed, NotFound)
            world.bucket("first")
    assert world.empty()


def test_move_a_copy(world: World) -> None:
    """The reference stays with the stream; the source key is free."""
    source = world.upload("a", THREE_REMOTE, metadata=world.wrapped_metadata())
    body = world.download(world.at("a"))
    copy = world.copy(world.at("a"), world.at("b"))
    moved = world.move(world.at("b"), world.at("c", "second"))
    assert (moved.stream_id, moved.created_at) == (copy.stream_id, copy.created_at)
    assert world.ancestors() == {copy.stream_id: source.stream_id}
    assert world.download(world.at("c", "second")) == body
    with pytest.raises(NotFound):
        world.download(world.at("b"))


def test_move_an_original_with_copies(world: World) -> None:
    """Copies go on pointing at the same stream."""
    source = world.upload("a", THREE_REMOTE)
    body = world.download(world.at("a"))
    copy = world.copy(world.at("a"), world.at("b"))
    world.move(world.at("a"), world.at("z", "second"))
    assert world.ancestors() == {copy.stream_id: source.stream_id}
    assert world.download(world.at("b")) == world.download(world.at("z", "second")) == body


def test_copy_a_moved_object(world: World) -> None:
    """A moved object copies like any other."""
    world.upload("a", WITH_TAIL)
    body = world.download(world.at("a"))
    world.move(world.at("a"), world.at("b"))
    world.copy(world.at("b"), world.at("c"))
    world.delete(world.at("b"))
    assert world.download(world.at("c")) == body


def test_reupload_over_an_original_that_has_copies(world: World) -> None:
    """The copies keep the old bytes."""
    world.upload("a", THREE_REMOTE)
    old = world.download(world.at("a"))
    world.copy(world.at("a"), world.at("b"))
    world.copy(world.at("a"), world.at("c"))
    world.upload("a", WITH_TAIL)
    assert world.download(world.at("b")) == world.download(world.at("c")) == old
    assert world.download(world.at("a")) != old
    assert world.freed == []


def test_promotion_carries_a_repair(world: World) -> None:
    """A repair that came later than the copy: the heir gets the repaired state."""
    source = world.upload("a", THREE_REMOTE)
    heir = world.copy(world.at("a"), world.at("b"))
    world.copy(world.at("a"), world.at("c"))
    repaired = world.nodes.pack([(0, bytes([3]) * 32)])
    with world.database.engine.begin() as connection:
        connection.execute(
            update(segments)
            .where(segments.c.stream_id == source.stream_id, segments.c.position == 1)
            .values(
                remote_alias_pieces=repaired,
                repaired_at=world.clock(),
                placement=4,
                redundancy=SCHEME._replace(total=9).encode(),
            )
        )
    before = {
        row[1]: SegmentRecord(*row) for row in world.table("segments") if row[0] == source.stream_id
    }
    seen = list_segments(world.database, ListSegments(world.at("c"))).segments
    for each in seen:
        lender = before[each.position]
        assert each.repaired_at == lender.repaired_at
        assert each.placement == lender.placement
        assert each.redundancy == lender.redundancy
        assert each.remote_alias_pieces == lender.remote_alias_pieces
    world.delete(world.at("a"))
    for row in world.table("segments"):
        segment = SegmentRecord(*row)
        if segment.stream_id == heir.stream_id:
            original = before[segment.position]
            assert segment.remote_alias_pieces == original.remote_alias_pieces
            assert segment.repaired_at == original.repaired_at
            assert segment.placement == original.placement
            assert segment.redundancy == original.redundancy


def test_delete_of_nothing(world: World) -> None:
    """Deleting what is not there is no error; an unknown bucket is."""
    assert delete_object(world.database, DeleteObject(world.at("none"))).object is None
    with world.unchanged(NotFound, match="'nowhere'"):
        delete_object(world.database, DeleteObject(world.at("none", "nowhere")))


def test_delete_if_match(world: World) -> None:
    """Only the object that is named is deleted."""
    record = world.upload("a")
    with world.unchanged(ConditionNotMatch):
        delete_object(world.database, DeleteObject(world.at("a"), b"x" * 16))
    with world.unchanged(ConditionNotMatch):
        delete_object(world.database, DeleteObject(world.at("b"), record.stream_id))
    done = delete_object(world.database, DeleteObject(world.at("a"), record.stream_id))
    assert done.object == record
