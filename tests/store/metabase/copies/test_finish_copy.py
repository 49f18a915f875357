"""What a copy is: the same object but for its place, and one reference to the root."""

from __future__ import annotations

import pytest
from sqlalchemy import text, update

from calque.errors import FailedPrecondition, ResourceExhausted
from calque.store.metabase.model.records import ObjectRecord, Position, SegmentRecord
from calque.store.metabase.model.schema import segments
from calque.store.metabase.objects.get_object import get_object
from calque.store.metabase.objects.list_segments import ListSegments, list_segments
from tests.store.world import (
    EMPTY,
    HOUR_US,
    LAYOUTS,
    MAX_COPIES,
    MULTIPART,
    ONE_INLINE,
    THREE_REMOTE,
    WITH_TAIL,
    Layout,
    World,
)


@pytest.fixture(params=LAYOUTS.values(), ids=LAYOUTS.keys())
def layout(request: pytest.FixtureRequest) -> Layout:
    """Every size class."""
    result: Layout = request.param
    return result


def _segments(world: World, record: ObjectRecord) -> list[SegmentRecord]:
    rows = [SegmentRecord(*row) for row in world.table("segments") if row[0] == record.stream_id]
    return sorted(rows, key=lambda segment: segment.position)


@pytest.mark.parametrize("bucket", ["first", "second"])
def test_copy_of_every_size_class(world: World, layout: Layout, bucket: str) -> None:
    """Bytes are equal whole and in ranges, stat is equal but for the place, source untouched."""
    source = world.upload("a", layout, metadata=world.wrapped_metadata())
    before = [row for row in world.table("objects") if row[4] == source.stream_id]
    source_segments = _segments(world, source)
    copy = world.copy(world.at("a"), world.at("b", bucket))
    body = world.download(world.at("a"))
    assert world.download(world.at("b", bucket)) == body
    assert len(body) == copy.total_plain_size
    for start, limit in ((0, 1), (50, 150), (99, 101), (1, len(body)), (120, 350)):
        if start <= limit <= len(body):
            assert world.download(world.at("b", bucket), start, limit) == body[start:limit]
    assert (
        copy._replace(
            bucket_name=source.bucket_name,
            object_key=source.object_key,
            version=source.version,
            stream_id=source.stream_id,
            created_at=source.created_at,
            encrypted_metadata_nonce=source.encrypted_metadata_nonce,
            encrypted_metadata_encrypted_key=source.encrypted_metadata_encrypted_key,
        )
        == source
    )
    assert [row for row in world.table("objects") if row[4] == source.stream_id] == before
    assert _segments(world, source) == source_segments
    assert get_object(world.database, world.at("b", bucket)) == copy


def test_segments_of_a_copy(world: World, layout: Layout) -> None:
    """Positions, sizes, etags, expiry and inline data are the source's; pieces are not stored."""
    source = world.upload("a", layout, expires_at=world.clock() + HOUR_US)
    request = world.finishing(world.at("a"), world.at("b"))
    copy = world.finish(request)
    originals, copies = _segments(world, source), _segments(world, copy)
    nonces = [request.keys.nonces[i * 12 : i * 12 + 12] for i in range(len(copies))]
    keys = [request.keys.keys[i * 48 : i * 48 + 48] for i in range(len(copies))]
    for original, segment, nonce, key in zip(originals, copies, nonces, keys, strict=True):
        assert segment == original._replace(
            stream_id=copy.stream_id,
            created_at=copy.created_at,
            repaired_at=None,
            encrypted_key_nonce=nonce,
            encrypted_key=key,
            remote_alias_pieces=None,
        )


def test_one_reference_for_remote_segments(world: World, layout: Layout) -> None:
    """A copy has one reference row, and none when its segments are all inline or absent."""
    source = world.upload("a", layout)
    copy = world.copy(world.at("a"), world.at("b"))
    expected = {} if layout in (EMPTY, ONE_INLINE) else {copy.stream_id: source.stream_id}
    assert world.ancestors() == expected


def test_positions_with_gaps(world: World) -> None:
    """Parts 1, 5 and 7, committed out of order, keep their positions."""
    world.upload("a", MULTIPART)
    copy = world.copy(world.at("a"), world.at("b"))
    places = [Position.decode(segment.position) for segment in _segments(world, copy)]
    assert places == [(1, 0), (5, 0), (5, 1), (7, 0)]


def test_two_copies_have_one_ancestor(world: World) -> None:
    """Two copies of one original: same ancestor, two rows."""
    source = world.upload("a")
    first = world.copy(world.at("a"), world.at("b"))
    second = world.copy(world.at("a"), world.at("c"))
    assert world.ancestors() == {
        first.stream_id: source.stream_id,
        second.stream_id: source.stream_id,
    }


def test_a_copy_of_a_copy_refers_to_the_root(world: World) -> None:
    """References never chain."""
    source = world.upload("a", WITH_TAIL)
    first = world.copy(world.at("a"), world.at("b"))
    second = world.copy(world.at("b"), world.at("c"))
    assert world.ancestors() == {
        first.stream_id: source.stream_id,
        second.stream_id: source.stream_id,
    }
    assert world.download(world.at("c")) == world.download(world.at("a"))


def test_metadata_directive_copy(world: World) -> None:
    """The metadata itself stays, its key and nonce are the re-wrapped ones."""
    source = world.upload("a", metadata=world.wrapped_metadata(b"kept"))
    request = world.finishing(world.at("a"), world.at("b"))
    copy = world.finish(request)
    assert copy.encrypted_metadata == b"kept"
    assert copy.encrypted_metadata_encrypted_key == request.metadata.key
    assert copy.encrypted_metadata_nonce == request.metadata.nonce
    assert get_object(world.database, world.at("a")) == source


def test_metadata_directive_replace(world: World) -> None:
    """New metadata on the copy, the old on the source."""
    source = world.upload("a", metadata=world.wrapped_metadata(b"old"))
    new = world.wrapped_metadata(b"new")
    copy = world.copy(world.at("a"), world.at("b"), metadata=new, override_metadata=True)
    assert (copy.encrypted_metadata_nonce, copy.encrypted_metadata) == (new.nonce, b"new")
    assert get_object(world.database, world.at("a")) == source


def test_replace_with_no_metadata(world: World) -> None:
    """Replacing with nothing leaves a copy without metadata."""
    world.upload("a", metadata=world.wrapped_metadata(b"old"))
    copy = world.copy(
        world.at("a"),
        world.at("b"),
        metadata=world.wrapped_metadata()._replace(nonce=None, data=None, key=None),
        override_metadata=True,
    )
    assert copy.encrypted_metadata is None
    assert copy.encrypted_metadata_encrypted_key is None


def test_expiry_equals_the_source(world: World) -> None:
    """Object and every segment of the copy expire with the source."""
    end = world.clock() + HOUR_US
    world.upload("a", THREE_REMOTE, expires_at=end)
    copy = world.copy(world.at("a"), world.at("b"))
    assert copy.expires_at == end
    assert {segment.expires_at for segment in _segments(world, copy)} == {end}


def test_list_segments_of_a_copy(world: World) -> None:
    """Every segment comes with pieces: whole, paged, after a cursor and in a byte range."""
    source = world.upload("a", THREE_REMOTE)
    world.copy(world.at("a"), world.at("b"))
    originals = _segments(world, source)

    def listed(**options: object) -> list[SegmentRecord]:
        request = ListSegments(world.at("b"), **options)  # type: ignore[arg-type]
        return list_segments(world.database, request).segments

    for options, expected in (
        ({}, originals),
        ({"limit": 2}, originals[:2]),
        ({"cursor": Position(0, 0)}, originals[1:]),
        ({"range_start": 100, "range_limit": 200}, originals[1:2]),
        ({"range_start": 99, "range_limit": 101}, originals[:2]),
        ({"cursor": Position(0, 1), "range_start": 50}, originals[2:]),
    ):
        found = listed(**options)
        assert [each.position for each in found] == [each.position for each in expected]
        assert [each.remote_alias_pieces for each in found] == [
            each.remote_alias_pieces for each in expected
        ]
        assert all(each.remote_alias_pieces for each in found)


def test_quota_counts_a_copy_in_full(world: World) -> None:
    """N copies are charged as N objects."""
    source = world.upload("a", THREE_REMOTE)
    world.copy(world.at("a"), world.at("b"))
    size = source.total_encrypted_size
    assert world.usage() == (2 * size, 6, 2)


def test_at_most_100_live_copies(world: World) -> None:
    """The 101st is refused and nothing is written; after a delete the next one passes."""
    world.upload("a")
    for number in range(MAX_COPIES):
        world.copy(world.at("a"), world.at(f"copy{number}"))
    with world.unchanged(ResourceExhausted, match="100 copies, the limit is 100"):
        world.copy(world.at("a"), world.at("one more"))
    with world.unchanged(ResourceExhausted):
        world.copy(world.at("copy7"), world.at("one more"))
    world.delete(world.at("copy50"))
    world.copy(world.at("copy7"), world.at("one more"))
    assert len(world.ancestors()) == MAX_COPIES


def test_inline_copies_are_not_limited(world: World) -> None:
    """Copies that borrow nothing are not counted."""
    world.upload("a", ONE_INLINE)
    for number in range(MAX_COPIES + 1):
        world.copy(world.at("a"), world.at(f"copy{number}"))
    assert world.ancestors() == {}


def test_repeated_finish_returns_the_same_object(world: World) -> None:
    """A retry after a lost answer makes no second version."""
    world.upload("a", THREE_REMOTE)
    request = world.finishing(world.at("a"), world.at("b"))
    first = world.finish(request)
    rows = world.rows()
    assert world.finish(request) == first
    assert world.rows() == rows


def test_repeated_finish_after_the_source_went(world: World) -> None:
    """A retry finds its result even when the source is gone by now."""
    world.upload("a")
    request = world.finishing(world.at("a"), world.at("b"))
    first = world.finish(request)
    world.delete(world.at("a"))
    assert world.finish(request) == first


def test_repeated_finish_after_the_copy_went(world: World) -> None:
    """A late retry does not bring a deleted copy back."""
    world.upload("a")
    request = world.finishing(world.at("a"), world.at("b"))
    world.finish(request)
    world.delete(world.at("b"))
    with world.unchanged(FailedPrecondition, match="finished before"):
        world.finish(request)


def test_repeated_finish_after_the_copy_moved(world: World) -> None:
    """What the operation made lies elsewhere now: its result is not at the destination."""
    world.upload("a")
    request = world.finishing(world.at("a"), world.at("b"))
    world.finish(request)
    world.move(world.at("b"), world.at("c"))
    with world.unchanged(FailedPrecondition, match="finished before"):
        world.finish(request)


def test_onto_itself_changes_nothing(world: World) -> None:
    """Without new metadata the stored object is returned, every row stays."""
    source = world.upload("a", WITH_TAIL, metadata=world.wrapped_metadata())
    world.copy(world.at("a"), world.at("b"))
    rows = world.rows()
    assert world.copy(world.at("a"), world.at("a"), may_overwrite=False) == source
    assert world.rows() == rows


def test_onto_itself_with_new_metadata(world: World) -> None:
    """The metadata is replaced; data, references and usage are untouched."""
    source = world.upload("a", WITH_TAIL, metadata=world.wrapped_metadata(b"old"))
    world.copy(world.at("a"), world.at("b"))
    rows = world.rows()
    new = world.wrapped_metadata(b"new")
    changed = world.copy(world.at("a"), world.at("a"), metadata=new, override_metadata=True)
    assert changed == source._replace(
        encrypted_metadata_nonce=new.nonce,
        encrypted_metadata=new.data,
        encrypted_metadata_encrypted_key=new.key,
    )
    assert get_object(world.database, world.at("a")) == changed
    after = world.rows()
    for untouched in ("segments", "segment_copies", "project_usage"):
        assert after[untouched] == rows[untouched]


def test_reading_an_original_needs_no_references(world: World) -> None:
    """Stat, segments and the Begin of a copy of an original never ask the reference table."""
    world.upload("a", THREE_REMOTE)
    body = world.download(world.at("a"))
    with world.database.engine.begin() as connection:
        connection.execute(text("ALTER TABLE segment_copies RENAME TO out_of_reach"))
    try:
        assert get_object(world.database, world.at("a")).segment_count == 3
        assert world.download(world.at("a")) == body
        assert len(world.rewrapped(world.at("a"), world.at("b"))) == 3
    finally:
        with world.database.engine.begin() as connection:
            connection.execute(text("ALTER TABLE out_of_reach RENAME TO segment_copies"))


def test_times_of_repair_and_expiry(world: World) -> None:
    """A copy shows its ancestor's time of repair; whoever is promoted keeps it, and the expiry."""
    expiry = world.clock() + HOUR_US
    source = world.upload("a", THREE_REMOTE, expires_at=expiry)
    first = world.copy(world.at("a"), world.at("b"))
    repaired = update(segments).where(segments.c.stream_id == source.stream_id)
    with world.database.engine.begin() as connection:
        connection.execute(repaired.values(repaired_at=12345))
    world.copy(world.at("a"), world.at("c"))
    for key in "bc":
        shown = list_segments(world.database, ListSegments(world.at(key))).segments
        assert {(each.repaired_at, each.expires_at) for each in shown} == {(12345, expiry)}
    world.delete(world.at("a"))
    assert {(row.repaired_at, row.expires_at) for row in _segments(world, first)} == {
        (12345, expiry)
    }
    shown = list_segments(world.database, ListSegments(world.at("c"))).segments
    assert {(each.repaired_at, each.expires_at) for each in shown} == {(12345, expiry)}
