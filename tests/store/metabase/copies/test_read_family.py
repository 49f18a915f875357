"""The family of an object: its original, its copies, and what a deletion frees."""

from __future__ import annotations

import os

import pytest
from sqlalchemy import func, select

from calque.errors import NotFound
from calque.store.metabase.copies.read_family import read_family
from calque.store.metabase.model.schema import segments
from tests.store.world import LAYOUTS, Layout, World


def held_bytes(world: World) -> int:
    """All that is kept, in pieces or inline."""
    kept = select(func.coalesce(func.sum(segments.c.encrypted_size), 0)).where(
        segments.c.remote_alias_pieces.is_not(None) | segments.c.inline_data.is_not(None)
    )
    with world.database.engine.connect() as connection:
        return int(connection.execute(kept).scalar_one())


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_what_it_says_is_what_a_deletion_frees(world: World, layout: Layout) -> None:
    """Of an original, of each copy, of the heir, of the last holder: to the byte."""
    family = {"a": world.upload("a", layout)}
    for name in ("b", "c", "d"):
        family[name] = world.copy(world.at("a"), world.at(name))
    for name in ("c", "a", "b", "d"):
        told = read_family(world.database, family[name].stream_id, limit=10).freed_bytes
        before = held_bytes(world)
        world.delete(world.at(name))
        assert before - held_bytes(world) == told, name
    assert held_bytes(world) == 0


def test_the_first_copy_is_the_heir(world: World) -> None:
    """Whichever of them is asked about, all are told the same, oldest first; a page of them."""
    original = world.upload("a")
    copies = []
    for name in ("b", "c", "d"):
        world.clock.advance(1000)
        copies.append(world.copy(world.at("a"), world.at(name)))
    for each in (original, *copies):
        told = read_family(world.database, each.stream_id, limit=2)
        assert told.original.stream_id == original.stream_id
        assert [copy.stream_id for copy in told.copies] == [copy.stream_id for copy in copies[:2]]
        assert told.copy_count == 3
    world.delete(world.at("a"))
    told = read_family(world.database, copies[2].stream_id, limit=10)
    assert told.original.stream_id == copies[0].stream_id


def test_contents_that_are_gone(world: World) -> None:
    """An object that was replaced meanwhile is not found."""
    with pytest.raises(NotFound):
        read_family(world.database, os.urandom(16), limit=10)
