"""Times are bounded at the door, and one bad item never stops a sweep."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from sqlalchemy import insert, select, text, update

from calque.errors import InvalidInput, Unavailable
from calque.operator.layers.chain import Call
from calque.store.embedded import EmbeddedStore
from calque.store.metabase.model.schema import freed_segments, objects, segments
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.nodes.node import Node
from calque.store.nodes.pieces import expiry_path, piece_path
from calque.store.upkeep.expire import sweep_store
from calque.store.upkeep.fsck import check_store
from tests.store_client.world import BUCKET, SEGMENT, World

END = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)


def expiring(world: World, key: str = "soon") -> None:
    world.project.upload(
        BUCKET, key, os.urandom(SEGMENT), expires=world.clock.now() + timedelta(hours=1)
    )


@pytest.mark.parametrize(
    "moment",
    [
        END,
        datetime.max,
        datetime(9999, 1, 1),
        datetime(1, 1, 1),
        datetime(1969, 12, 31, tzinfo=UTC),
    ],
)
def test_an_expiry_outside_the_calendar_is_refused(plain_world: World, moment: datetime) -> None:
    """At the very end, before 1970: an error that says what to do; nothing is begun."""
    with pytest.raises(InvalidInput):
        plain_world.project.upload(BUCKET, "k", b"x" * SEGMENT, expires=moment)
    with pytest.raises(InvalidInput):
        plain_world.project.begin_multipart(BUCKET, "k", expires=moment)
    assert list(plain_world.project.list_pending(BUCKET)) == []
    assert plain_world.piece_count() == 0


@pytest.mark.parametrize("seconds", [-1, 253_370_764_800, 253_402_300_799, 2**62])
def test_a_hostile_expiry_is_refused(plain_world: World, seconds: int) -> None:
    """Whatever stands in the message."""
    session = plain_world.project.session
    with pytest.raises(InvalidInput):
        session.metainfo.begin_object(
            pb.ObjectBeginRequest(
                header=session.header,
                bucket=BUCKET,
                encrypted_object_key=b"\x02k",
                expires_at=Timestamp(seconds=seconds),
                encryption_parameters=pb.EncryptionParameters(
                    cipher_suite=pb.CIPHER_AES_256_GCM, block_size=1024
                ),
            )
        )


def test_the_last_second_that_passes(plain_world: World) -> None:
    """It is swept around, checked and read back."""
    last = datetime(9998, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    plain_world.project.upload(BUCKET, "k", b"x" * SEGMENT, expires=last)
    assert plain_world.project.stat(BUCKET, "k").expires == last
    sweep_store(plain_world.store)
    assert check_store(plain_world.store, young=True) == []
    assert plain_world.keys() == ["k"]


def test_what_an_earlier_release_let_in_stops_nothing(plain_world: World) -> None:
    """A marker and rows at the end of the calendar: sweeps and checks go on."""
    world = plain_world
    world.project.upload(BUCKET, "for ever", os.urandom(SEGMENT))
    database = world.store.endpoint.database
    at_us = 253_402_300_799_999_999
    with database.engine.begin() as connection:
        connection.execute(update(objects).values(expires_at=at_us))
        connection.execute(update(segments).values(expires_at=at_us))
    (node,) = world.store.nodes.direct()
    node.root.write(expiry_path(bytes(32), END), b"")
    expiring(world)
    world.clock.ahead += timedelta(hours=5)
    swept = sweep_store(world.store)
    assert (swept.expired_objects, swept.expired_pieces) == (1, 1)
    assert world.keys() == ["for ever"]
    assert check_store(world.store, young=True) == []


def test_a_piece_that_cannot_be_deleted_stops_no_other(plain_world: World) -> None:
    """The node goes on with the next piece and keeps the marker of the one that failed."""
    world = plain_world
    for key in ("a", "b", "c"):
        expiring(world, key)
    (node,) = world.store.nodes.direct()
    stuck = min(stored.piece for stored in node.pieces())

    def stubborn(call: Call, proceed: Callable[[Call], Any]) -> Any:
        if call.verb == "delete" and call.path == piece_path(stuck):
            raise Unavailable("not this one")
        return proceed(call)

    world.store.nodes._nodes[node.id] = Node(node.id, node.root.layer(stubborn))
    world.clock.ahead += timedelta(hours=5)
    assert sweep_store(world.store).expired_pieces == 2
    world.store.nodes._nodes[node.id] = node
    assert sweep_store(world.store).expired_pieces == 1
    assert world.piece_count() == 0


def test_a_damaged_row_of_the_queue_stops_no_other(plain_world: World) -> None:
    """Pieces that cannot be read stay in the queue; those beside them go."""
    world = plain_world
    database = world.store.endpoint.database
    damaged = (b"", b"\x09", b"\x01", b"\x01\x00\x63", b"\x01" + b"\x80" * 8 + b"\x01\x01")
    bad = [
        *zip((bytes([n]) * 32 for n in (0, 1, 2, 254, 255)), damaged, strict=True),
        (b"", b"\x01\x00\x01"),
        (b"r" * 100, b"\x01\x00\x01"),
    ]
    with database.engine.begin() as connection:
        for root, packed in bad:
            connection.execute(
                insert(freed_segments).values(root_piece_id=root, alias_pieces=packed, freed_at=0)
            )
    expiring(world)
    world.clock.ahead += timedelta(hours=1, minutes=1)
    assert sweep_store(world.store).deleted_pieces == 1
    assert world.piece_count() == 0
    EmbeddedStore.open(world.store.folder).close()
    with database.engine.begin() as connection:
        assert len(connection.execute(freed_segments.select()).fetchall()) == len(bad)
        connection.execute(freed_segments.delete())


def test_a_damaged_row_of_an_object_stops_no_other(
    plain_world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """It is named and left, in every sweep, and the expired objects before and after it go."""
    world = plain_world
    database = world.store.endpoint.database
    for key in ("a", "b", "c"):
        expiring(world, key)
    with database.engine.begin() as connection:
        streams = connection.execute(select(objects.c.stream_id)).scalars().all()
        row = update(objects).where(objects.c.stream_id == streams[1])
        size = connection.execute(select(objects.c.total_encrypted_size)).scalars().all()[1]
        connection.execute(row.values(total_encrypted_size=text("'damaged'")))
    world.clock.ahead += timedelta(hours=5)
    assert sweep_store(world.store).expired_objects == 2
    assert "cannot be deleted" in caplog.text
    assert sweep_store(world.store).expired_objects == 0
    with database.engine.begin() as connection:
        connection.execute(row.values(total_encrypted_size=size))
    assert sweep_store(world.store).expired_objects == 1


def test_a_damaged_row_of_an_upload_stops_no_other(
    plain_world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Uploads that nobody goes on with, one of them with a segment that cannot be let go."""
    world = plain_world
    database = world.store.endpoint.database
    for key in ("a", "b", "c"):
        world.project.begin_multipart(BUCKET, key).upload_part(1, os.urandom(SEGMENT))
    with database.engine.begin() as connection:
        roots = connection.execute(select(segments.c.root_piece_id)).scalars().all()
        # Its place in the queue of pieces to delete is taken, by a row that cannot be read.
        connection.execute(
            insert(freed_segments).values(root_piece_id=roots[1], alias_pieces=b"", freed_at=0)
        )
    world.clock.ahead += timedelta(days=3)
    assert sweep_store(world.store).abandoned_uploads == 2
    assert "cannot be deleted" in caplog.text
    with database.engine.begin() as connection:
        connection.execute(freed_segments.delete())
    assert sweep_store(world.store).abandoned_uploads == 1
    assert world.piece_count() == 0
