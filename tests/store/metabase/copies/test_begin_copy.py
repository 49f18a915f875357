"""Begin of a copy: what it refuses, what it returns, and that it writes nothing."""

from __future__ import annotations

import os

import pytest
from sqlalchemy import update

from calque.errors import FailedPrecondition, InvalidInput, NotFound
from calque.store.metabase.copies.begin_copy import BeginCopy, begin_copy
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model.checks import MAX_OPERATION_KEYS
from calque.store.metabase.model.records import ObjectLocation, Position
from calque.store.metabase.model.schema import objects
from calque.store.metabase.objects.delete_object import DeleteObject, delete_object
from calque.store.metabase.streams.lookup import record_by_stream
from tests.store.world import HOUR_US, LAYOUTS, MULTIPART, ONE_REMOTE, THREE_REMOTE, Layout, World


@pytest.mark.parametrize(
    ("source", "target", "named"),
    [
        (("", b"a"), ("first", b"b"), "bucket is missing"),
        (("first", b""), ("first", b"b"), "encrypted object key is missing"),
        (("first", b"a"), ("", b"b"), "new bucket is missing"),
        (("first", b"a"), ("first", b""), "new encrypted object key is missing"),
        (("first", b"a" * 24_577), ("first", b"b"), "24577"),
        (("First!", b"a"), ("first", b"b"), "not allowed"),
    ],
)
def test_missing_and_malformed_fields(
    source: tuple[str, bytes], target: tuple[str, bytes], named: str
) -> None:
    """Each missing or malformed field is refused by name."""
    project = os.urandom(16)
    with pytest.raises(InvalidInput, match=named):
        BeginCopy(ObjectLocation(project, *source), ObjectLocation(project, *target))


def test_unknown_object(world: World) -> None:
    """An object that was never there is not found."""
    with world.unchanged(NotFound, match="source object does not exist"):
        begin_copy(world.database, BeginCopy(world.at("none"), world.at("b")))


def test_pending_object(world: World) -> None:
    """An upload that was not committed is not found."""
    world.begin(world.at("a"))
    with world.unchanged(NotFound, match="source object"):
        begin_copy(world.database, BeginCopy(world.at("a"), world.at("b")))


def test_expired_object(world: World) -> None:
    """An expired object is not found."""
    world.upload("a", expires_at=world.clock() + HOUR_US)
    world.clock.advance(2 * HOUR_US)
    with world.unchanged(NotFound, match="source object"):
        begin_copy(world.database, BeginCopy(world.at("a"), world.at("b")))


def test_unknown_source_bucket_is_named(world: World) -> None:
    """The message says that it is the source's bucket, and which."""
    with world.unchanged(NotFound, match="source bucket 'nowhere'"):
        begin_copy(world.database, BeginCopy(world.at("a", "nowhere"), world.at("b")))


def test_unknown_destination_bucket_is_named(world: World) -> None:
    """The message says that it is the destination's bucket, and which."""
    world.upload("a")
    with world.unchanged(NotFound, match="destination bucket 'nowhere'"):
        begin_copy(world.database, BeginCopy(world.at("a"), world.at("b", "nowhere")))


def test_keys_come_in_position_order(world: World) -> None:
    """Keys, nonces and positions are those of the segments, by position."""
    source = world.upload("a", MULTIPART)
    page = begin_copy(world.database, BeginCopy(world.at("a"), world.at("b")))
    stored = sorted(
        (row[1], row[6], row[7]) for row in world.table("segments") if row[0] == source.stream_id
    )
    assert [tuple(key) for key in page.keys] == stored
    assert [Position.decode(key.position) for key in page.keys] == [(1, 0), (5, 0), (5, 1), (7, 0)]
    assert page.source == source
    assert not page.more


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_small_and_large_sources_alike(world: World, layout: Layout) -> None:
    """Whether an object has no, one or more segments, Begin gives it and all of its keys."""
    source = world.upload("a", layout)
    page = begin_copy(world.database, BeginCopy(world.at("a"), world.at("b")))
    stored = sorted(
        (row[1], row[6], row[7]) for row in world.table("segments") if row[0] == source.stream_id
    )
    assert len(stored) == source.segment_count
    assert [tuple(key) for key in page.keys] == stored
    assert page.source == source
    assert not page.more


def test_small_source_of_another_stream(world: World) -> None:
    """A small object that was replaced is refused as a large one is."""
    old = world.upload("a", ONE_REMOTE)
    world.upload("a", ONE_REMOTE)
    with world.unchanged(FailedPrecondition, match="replaced"):
        begin_copy(world.database, BeginCopy(world.at("a"), world.at("b"), stream_id=old.stream_id))


def test_reads_after_a_look_are_snapshots(world: World) -> None:
    """A connection that has looked once reads one snapshot a transaction again."""
    source = world.upload("a", ONE_REMOTE)
    begin_copy(world.database, BeginCopy(world.at("a"), world.at("b")))

    def work(transaction: Transaction) -> tuple[object, object]:
        before = record_by_stream(transaction, source.stream_id)
        delete_object(world.database, DeleteObject(world.at("a")))
        return before, record_by_stream(transaction, source.stream_id)

    before, after = world.database.read(work)
    assert before is not None
    assert before == after


def test_pending_versions_beside_a_committed_one(world: World) -> None:
    """Uploads pending at the key before and after do not hide the committed object."""
    world.begin(world.at("a"))
    committed = world.upload("a")
    world.begin(world.at("a"))
    page = begin_copy(world.database, BeginCopy(world.at("a"), world.at("b")))
    assert page.source.stream_id == committed.stream_id


def test_begin_writes_nothing(world: World) -> None:
    """Every table and every quota is as before."""
    world.upload("a", THREE_REMOTE)
    before = world.rows()
    begin_copy(world.database, BeginCopy(world.at("a"), world.at("b")))
    assert world.rows() == before


def test_pages_of_keys(world: World) -> None:
    """Pages join to the whole list, and the last one says so."""
    world.upload("a", THREE_REMOTE)
    whole = begin_copy(world.database, BeginCopy(world.at("a"), world.at("b"))).keys
    first = begin_copy(world.database, BeginCopy(world.at("a"), world.at("b"), limit=2))
    assert first.more
    rest = begin_copy(
        world.database,
        BeginCopy(
            world.at("a"),
            world.at("b"),
            stream_id=first.source.stream_id,
            cursor=Position.decode(first.keys[-1].position),
        ),
    )
    assert [*first.keys, *rest.keys] == whole
    assert not rest.more


def test_next_page_of_a_replaced_source(world: World) -> None:
    """A page of another stream is never mixed in: the source was replaced."""
    old = world.upload("a", THREE_REMOTE)
    world.upload("a", THREE_REMOTE)
    with world.unchanged(FailedPrecondition, match="replaced"):
        begin_copy(world.database, BeginCopy(world.at("a"), world.at("b"), stream_id=old.stream_id))


def test_more_segments_than_an_operation_takes(world: World) -> None:
    """An object of too many segments is refused before a key is re-wrapped, with both figures."""
    source = world.upload("a", THREE_REMOTE)
    counted = update(objects).where(objects.c.stream_id == source.stream_id)
    for count, most in ((MAX_OPERATION_KEYS + 1, "1000001 .* 1000000"), (3, None)):
        with world.database.engine.begin() as connection:
            connection.execute(counted.values(segment_count=count))
        request = BeginCopy(world.at("a"), world.at("b"))
        if most is None:
            assert len(begin_copy(world.database, request).keys) == 3
        else:
            with world.unchanged(InvalidInput, match=most):
                begin_copy(world.database, request)
