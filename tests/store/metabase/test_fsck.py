"""fsck finds each kind of damage: a check that cannot fail proves nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import delete, insert, update

from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.migrate import migrate
from calque.store.metabase.fsck import fsck
from calque.store.metabase.model.records import ObjectRecord
from calque.store.metabase.model.schema import (
    buckets,
    objects,
    operation_keys,
    project_usage,
    projects,
    segment_copies,
    segment_slices,
    segments,
)
from tests.store.world import HOUR_US, THREE_REMOTE, Clock, World

Damage = Callable[[ObjectRecord, ObjectRecord], object]


@pytest.fixture
def damaged(database_url: str) -> Iterator[tuple[World, ObjectRecord, ObjectRecord]]:
    """An original and its copy, to be broken."""
    clock = Clock()
    database = Database.open(database_url, clock=clock)
    migrate(database)
    world = World(database, clock)
    original = world.upload("a", THREE_REMOTE, expires_at=clock() + HOUR_US)
    copy = world.copy(world.at("a"), world.at("b"))
    assert fsck(database) == []
    yield world, original, copy
    database.close()


DAMAGES: dict[str, Damage] = {
    "segments without object": lambda a, b: delete(objects).where(
        objects.c.stream_id == b.stream_id
    ),
    "object without bucket": lambda a, b: delete(buckets).where(buckets.c.name == "first"),
    "bucket without project": lambda a, b: delete(projects),
    "wrong totals": lambda a, b: delete(segments).where(
        segments.c.stream_id == b.stream_id, segments.c.position == 2
    ),
    "wrong offset": lambda a, b: (
        update(segments)
        .where(segments.c.stream_id == b.stream_id, segments.c.position == 2)
        .values(plain_offset=1)
    ),
    "segment expires apart from its object": lambda a, b: (
        update(segments)
        .where(segments.c.stream_id == b.stream_id, segments.c.position == 2)
        .values(expires_at=None)
    ),
    "orphaned reference": lambda a, b: insert(segment_copies).values(
        stream_id=b"x" * 16, ancestor_stream_id=a.stream_id
    ),
    "reference that borrows nothing": lambda a, b: (
        update(segments).where(segments.c.stream_id == b.stream_id).values(inline_data=b"")
    ),
    "dangling ancestor": lambda a, b: update(segment_copies).values(ancestor_stream_id=b"x" * 16),
    "copy expires apart from its ancestor": lambda a, b: (
        update(objects).where(objects.c.stream_id == b.stream_id).values(expires_at=None)
    ),
    "chained ancestor": lambda a, b: insert(segment_copies).values(
        stream_id=a.stream_id, ancestor_stream_id=b.stream_id
    ),
    "too many copies": lambda a, b: insert(segment_copies).values(
        [
            {"stream_id": bytes([number]) * 16, "ancestor_stream_id": a.stream_id}
            for number in range(101)
        ]
    ),
    "piece-less segment without ancestor": lambda a, b: delete(segment_copies),
    "root piece id differs from the ancestor's": lambda a, b: (
        update(segments).where(segments.c.stream_id == b.stream_id).values(root_piece_id=b"x" * 32)
    ),
    "segment both inline and remote": lambda a, b: (
        update(segments).where(segments.c.stream_id == a.stream_id).values(inline_data=b"x")
    ),
    "copy that holds pieces": lambda a, b: (
        update(segments)
        .where(segments.c.stream_id == b.stream_id)
        .values(remote_alias_pieces=b"\x01\x00\x01")
    ),
    "damaged pieces": lambda a, b: (
        update(segments)
        .where(segments.c.stream_id == a.stream_id)
        .values(remote_alias_pieces=b"\x01\xff")
    ),
    "pieces on unknown nodes": lambda a, b: (
        update(segments)
        .where(segments.c.stream_id == a.stream_id)
        .values(remote_alias_pieces=b"\x01\x00\x63")
    ),
    "pieces held twice": lambda a, b: (
        update(segments)
        .where(segments.c.stream_id == b.stream_id)
        .values(remote_alias_pieces=b"\x01\x00\x01")
    ),
    "quota drift": lambda a, b: update(project_usage).values(bytes=1),
    "keys without operation": lambda a, b: insert(operation_keys).values(
        operation_id=b"x" * 16,
        first_position=0,
        last_position=0,
        key_count=1,
        positions=b"",
        nonces=b"",
        keys=b"",
    ),
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_damage_is_found(damaged: tuple[World, ObjectRecord, ObjectRecord], kind: str) -> None:
    """Each kind of damage is named."""
    world, original, copy = damaged
    with world.database.engine.begin() as connection:
        connection.execute(DAMAGES[kind](original, copy))  # type: ignore[call-overload]
    assert kind in {finding.kind for finding in fsck(world.database)}


SLICE_DAMAGES: dict[str, Callable[[bytes, bytes], object]] = {
    "orphaned slice": lambda holder, source: delete(segments).where(segments.c.stream_id == holder),
    "slice that is no segment's": lambda holder, source: (
        update(segments).where(segments.c.stream_id == holder).values(plain_size=1)
    ),
    "slice of a segment without pieces": lambda holder, source: delete(segments).where(
        segments.c.stream_id == source
    ),
    "slice beyond its source": lambda holder, source: update(segment_slices).values(skip=90),
    "root piece id differs from the source's": lambda holder, source: (
        update(segments).where(segments.c.stream_id == source).values(root_piece_id=b"r" * 32)
    ),
    "slice expires apart from its source": lambda holder, source: (
        update(segments).where(segments.c.stream_id == source).values(expires_at=1)
    ),
    "segments without object": lambda holder, source: delete(segment_slices),
    "piece-less segment without ancestor": lambda holder, source: delete(segment_slices),
}


@pytest.mark.parametrize("kind", SLICE_DAMAGES)
def test_damaged_slices(database_url: str, kind: str) -> None:
    """Of a slice whose source has lost its object, each kind of damage is found."""
    clock = Clock()
    database = Database.open(database_url, clock=clock)
    migrate(database)
    world = World(database, clock)
    source = world.upload("a")
    upload = world.begin(world.at("b"))
    world.copy_part(upload, 1, world.at("a"), 20, 50)
    holder = world.commit(upload)
    world.delete(world.at("a"))
    assert fsck(database) == []
    with database.engine.begin() as connection:
        connection.execute(SLICE_DAMAGES[kind](holder.stream_id, source.stream_id))  # type: ignore[call-overload]
    assert kind in {finding.kind for finding in fsck(database)}
    database.close()
