"""Pieces of killed uploads that no row names are found and removed, and no others."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from datetime import timedelta

import pytest

from calque.store.maintenance.fsck import check_store
from calque.store.maintenance.sweep import Orphans, sweep_store
from calque.store.metabase.objects.hold_pieces import hold_pieces
from calque.store.nodes.pieces import piece_id
from tests.store_client.conftest import TWO_OF_FOUR
from tests.store_client.world import BUCKET, OTHER, SEGMENT, World


def lay_orphans(world: World, count: int = 1) -> int:
    """Pieces as an upload leaves them that is killed before it commits its segment."""
    nodes = world.store.nodes.direct()
    for node in nodes:
        for _ in range(count):
            node.write(piece_id(os.urandom(32), node.id, 0), [b"left behind"], None)
    return count * len(nodes)


def swept(world: World, orphans: Orphans = Orphans.REMOVE) -> int:
    return sweep_store(world.store, orphans=orphans).orphaned_pieces


def test_old_orphans_go_and_everything_else_stays(world: World) -> None:
    """Originals, copies, promoted copies and pending parts keep their pieces."""
    content = os.urandom(2 * SEGMENT)
    for key in ("a", "b"):
        world.project.upload(BUCKET, key, content)
        world.project.copy_object(BUCKET, key, OTHER, key)
    world.project.delete_object(BUCKET, "a")
    world.clock.ahead += timedelta(hours=49)
    upload = world.project.begin_multipart(BUCKET, "parts")
    upload.upload_part(1, content)
    orphans, whole = lay_orphans(world), world.piece_count()
    assert swept(world) == orphans
    assert world.piece_count() == whole - orphans
    for bucket, key in ((OTHER, "a"), (OTHER, "b"), (BUCKET, "b")):
        assert world.project.download(bucket, key).read() == content
    upload.commit()
    assert world.project.download(BUCKET, "parts").read() == content
    assert check_store(world.store, young=True) == []


def test_young_pieces_stay(plain_world: World) -> None:
    """They may belong to an upload that is under way; nor does a usual sweep look for them."""
    orphans = lay_orphans(plain_world)
    assert swept(plain_world) == 0
    plain_world.clock.ahead += timedelta(hours=47)
    assert swept(plain_world) == 0
    plain_world.clock.ahead += timedelta(hours=2)
    assert swept(plain_world, Orphans.LEAVE) == 0
    assert swept(plain_world) == orphans


def test_nothing_goes_during_a_backup(plain_world: World) -> None:
    """A piece is kept where it is until the backup is done."""
    orphans = lay_orphans(plain_world)
    plain_world.clock.ahead += timedelta(hours=49)
    with hold_pieces(plain_world.store.endpoint.database):
        assert swept(plain_world) == 0
    while not (gone := swept(plain_world)):
        pass
    assert gone == orphans


def test_a_node_that_is_away_stops_no_other(make_world: Callable[..., World]) -> None:
    """Its orphans wait until it is back."""
    world = make_world(TWO_OF_FOUR)
    lay_orphans(world)
    world.clock.ahead += timedelta(hours=49)
    root = world.store.folder / "nodes" / "1"
    root.rename(root.with_name("away"))
    root.mkdir()
    assert swept(world) == 3
    root.rmdir()
    root.with_name("away").rename(root)
    assert swept(world) == 1


def test_the_wrong_database_removes_nothing(
    plain_world: World, caplog: pytest.LogCaptureFixture
) -> None:
    """Where most pieces are unknown somebody must say that this is meant."""
    orphans = lay_orphans(plain_world, 101)
    plain_world.clock.ahead += timedelta(hours=49)
    with caplog.at_level(logging.WARNING):
        assert swept(plain_world) == 0
    assert "right database" in caplog.text
    assert swept(plain_world, Orphans.REMOVE_MANY) == orphans
