"""Downloads under way while pieces are moved to other nodes beneath them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select, update

from calque.errors import CalqueError, ConditionNotMatch, NotFound
from calque.store.embedded import EmbeddedStore, StoreOptions
from calque.store.metabase.accounts.nodes import Nodes
from calque.store.metabase.model.records import Redundancy as StoredRedundancy
from calque.store.metabase.model.schema import segments
from calque.store.nodes.erasure import Coder, Redundancy
from calque.store.nodes.pieces import piece_id, piece_path
from calque.store.nodes.units import Stripes, seal_units, shares_of
from calque.store.uplink.session import UplinkSettings
from calque.values import MIB
from tests.store_client.conftest import ONE
from tests.store_client.world import BUCKET, OTHER, SEGMENT, SMALL, Clock, World

LARGE = UplinkSettings(segment_size=8 * MIB)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """One piece a segment, on one of two nodes."""
    nodes = [str(tmp_path / "disk0"), str(tmp_path / "disk1")]
    clock = Clock()
    store = EmbeddedStore.create(
        tmp_path / "store", StoreOptions(redundancy=ONE, nodes=nodes), clock=clock
    )
    world = World(store, World._open(store, store.grant(), SMALL), clock)
    for bucket in (BUCKET, OTHER):
        world.project.create_bucket(bucket)
    yield world
    world.check()
    world.close()


def repair(world: World, *, truncate: bool = False) -> None:
    """Do what a repair does: every piece goes to the other node, under the name it has there."""
    database, directory = world.store.endpoint.database, world.store.nodes.direct()
    known = Nodes(database)
    columns = (segments.c.root_piece_id, segments.c.encrypted_size, segments.c.redundancy)
    with database.engine.begin() as connection:
        physical = segments.c.remote_alias_pieces.is_not(None)
        for root, size, scheme, packed in connection.execute(
            select(*columns, segments.c.remote_alias_pieces).where(physical)
        ).all():
            ((number, holder),) = known.unpack(packed)
            old = next(node for node in directory if node.id == holder.node_id)
            new = next(node for node in directory if node.id != holder.node_id)
            stored = StoredRedundancy.decode(scheme)
            coder = Coder(Redundancy(share_size=stored.share_size))
            before, after = (piece_id(root, node.id, number) for node in (old, new))
            whole = Stripes.of_range(coder, size, 0, size)
            shares = shares_of(before, old.read(before, 0, coder.piece_size(size)), whole)
            new.write(after, seal_units(after, shares), None)
            connection.execute(
                update(segments)
                .where(segments.c.root_piece_id == root, physical)
                .values(remote_alias_pieces=known.pack([(number, new.id)]), repaired_at=1)
            )
            if truncate:  # whoever has the file open reads to its new end
                place = world.store.description.nodes[directory.index(old)].address
                os.truncate(Path(place) / piece_path(before), 2 * MIB)
            old.delete(before)


@pytest.mark.parametrize("key", ["k", "copy"])
def test_segments_are_listed_again(world: World, key: str) -> None:
    """After the first segment the pieces move: the rest comes from where they are now."""
    content = os.urandom(5 * SEGMENT)
    world.project.upload(BUCKET, "k", content)
    world.project.copy_object(BUCKET, "k", BUCKET, "copy")
    download = world.project.download(BUCKET, key, offset=10)
    got = download.read(SEGMENT)
    repair(world)
    got += download.read(SEGMENT)
    repair(world)
    assert got + download.read() == content[10:]


def test_in_the_middle_of_a_segment(world: World) -> None:
    """Reading goes on at the byte where the old piece ended."""
    content = os.urandom(7 * MIB)
    project = world.through(world.project.access, LARGE)
    project.upload(BUCKET, "k", content)
    download = project.download(BUCKET, "k")
    got = download.read(100)
    repair(world, truncate=True)
    assert got + download.read() == content


def test_promotion_beneath_a_download(world: World) -> None:
    """The original goes while its copy is read, and while it is read itself the reader is told."""
    content = os.urandom(5 * SEGMENT)
    world.project.upload(BUCKET, "k", content)
    world.project.copy_object(BUCKET, "k", OTHER, "copy")
    of_copy, of_original = (
        world.project.download(*place) for place in ((OTHER, "copy"), (BUCKET, "k"))
    )
    got = of_copy.read(10)
    of_original.read(10)
    world.project.delete_object(BUCKET, "k")
    repair(world)
    assert got + of_copy.read() == content
    with pytest.raises(NotFound):
        of_original.read()


def test_an_object_that_is_replaced(world: World) -> None:
    """Its pieces are gone for good: the download says so, and gives no byte of the new object."""
    world.project.upload(BUCKET, "k", os.urandom(5 * SEGMENT))
    download = world.project.download(BUCKET, "k")
    download.read(SEGMENT)
    world.project.upload(BUCKET, "k", bytes(5 * SEGMENT))
    with pytest.raises(ConditionNotMatch, match="replaced"):
        download.read()


def test_pieces_that_are_lost(world: World) -> None:
    """The same pieces are listed again: that is a loss, and is said at once."""
    world.project.upload(BUCKET, "k", os.urandom(2 * SEGMENT))
    download = world.project.download(BUCKET, "k")
    for node in world.store.nodes.direct():
        for stored in list(node.pieces()):
            node.delete(stored.piece)
    with pytest.raises(CalqueError, match="does not have piece"):
        download.read()
    world.project.delete_object(BUCKET, "k")
