"""Keys as long as they may be, on both databases."""

from __future__ import annotations

import os

import pytest
from sqlalchemy import text

from calque.errors import AlreadyExists, InvalidInput
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.migrate import migrate
from calque.store.metabase.model.checks import MAX_KEY_SIZE
from calque.store.metabase.model.conditions import Conditions
from calque.store.metabase.model.object_keys import HEAD_SIZE
from calque.store.metabase.model.records import ObjectLocation
from calque.store.metabase.model.schema import PENDING
from calque.store.metabase.objects.get_object import get_object
from calque.store.metabase.objects.list_objects import ListObjects, list_objects
from calque.store.uplink.encryption.access import EncryptionAccess
from calque.store.uplink.encryption.keys import SecretKey
from tests.servers.postgres import PostgresServer
from tests.store.world import Clock, World

# Random, so that no compression makes room for them.
STEM = os.urandom(MAX_KEY_SIZE - 100).replace(b"/", b"-")
SIZES = (1, HEAD_SIZE - 1, HEAD_SIZE, HEAD_SIZE + 1, 2704, 4096, MAX_KEY_SIZE - 100)


def _at(world: World, key: bytes) -> ObjectLocation:
    return world.at("x")._replace(key=key)


def _upload(world: World, key: bytes, conditions: Conditions | None = None) -> bytes:
    """An object at ``key``; its stream."""
    world.upload("at first")
    return world.move(
        world.at("at first"), _at(world, key), conditions=conditions or Conditions()
    ).stream_id


@pytest.mark.parametrize(
    "key", ["/" * 1024, "a/" * 512, "a" * 1024, "ab/" * 341 + "c", "ü/" * 341], ids=len
)
def test_any_key_of_1024_bytes_can_be_encrypted(key: str) -> None:
    """However many components a key has, a satellite takes it."""
    located = EncryptionAccess(SecretKey(b"k" * 32)).locate("bucket", key)
    assert len(located.encrypted) <= MAX_KEY_SIZE


@pytest.mark.parametrize("size", SIZES)
def test_the_life_of_a_long_key(world: World, size: int) -> None:
    """Every verb meets the right one of keys that differ in their last byte."""
    one, other, moved = (STEM[:size] + end for end in (b"1", b"2", b"3"))
    first = _upload(world, one)
    body = world.download(_at(world, one))
    copy = world.copy(_at(world, one), _at(world, other))
    assert world.download(_at(world, other)) == body
    world.move(_at(world, other), _at(world, moved))
    page = list_objects(world.database, ListObjects(world.project_id, "first"))
    assert [item.key for item in page.items] == [one, moved]
    with pytest.raises(AlreadyExists):
        _upload(world, one, Conditions(if_not_exists=True))
    world.delete(world.at("at first"))
    again = _upload(world, one)
    assert again != first
    assert world.delete(_at(world, one)) is not None
    assert world.delete(_at(world, one)) is None
    survivor = world.delete(_at(world, moved))
    assert survivor is not None
    assert survivor.stream_id == copy.stream_id
    assert world.empty()


def test_long_keys_are_listed_in_order(world: World) -> None:
    """Keys that differ only behind what an index holds rise as any others do, page by page."""
    keys = [STEM[:HEAD_SIZE] + os.urandom(40).hex().encode() for _ in range(20)]
    keys += [STEM[:HEAD_SIZE], STEM[: HEAD_SIZE - 1], STEM[: HEAD_SIZE - 1] + b"\xff"]
    for key in keys:
        world.begin(_at(world, key))
        _upload(world, key)
    for status in (3, PENDING):
        listed: list[bytes] = []
        more = True
        while more:
            request = ListObjects(
                world.project_id,
                "first",
                cursor=listed[-1] if listed else None,
                limit=3,
                status=status,
            )
            page = list_objects(world.database, request)
            listed += [item.key for item in page.items if item.key != b"at first"]
            more = page.more
        assert listed == sorted(keys)


def test_folders_behind_the_head(world: World) -> None:
    """A level far down shows each folder once, whatever the order of the index."""
    prefix = STEM[:HEAD_SIZE] + b"/"
    for folder in (b"b", b"a", b"c"):
        for name in (b"1", b"2", b"3"):
            _upload(world, prefix + folder + b"/" + name)
    for limit in (1, 2, 1000):
        seen: list[bytes] = []
        more = True
        while more:
            request = ListObjects(
                world.project_id,
                "first",
                prefix=prefix,
                cursor=seen[-1] if seen else None,
                recursive=False,
                limit=limit,
            )
            page = list_objects(world.database, request)
            seen += [item.key for item in page.items]
            more = page.more
        assert seen == [b"a/", b"b/", b"c/"]
    world.delete_bucket("first", batch=2)
    assert world.empty()


def test_a_key_that_is_too_long(world: World) -> None:
    """One byte more than a key may have is refused before the database sees it."""
    with world.unchanged(InvalidInput, match=f"the limit is {MAX_KEY_SIZE}"):
        world.begin(_at(world, b"k" * (MAX_KEY_SIZE + 1)))


def test_a_store_of_before(postgres: PostgresServer, clock: Clock) -> None:
    """Objects of a metabase with the old indexes are found by the new ones."""
    url = postgres.database()
    database = Database.open(url, clock=clock)
    migrate(database, "0004")
    row = (
        "'pppppppppppppppp', 'first', convert_to(n::text, 'UTF8'), 1,"
        " convert_to('s' || n, 'UTF8'), 1, NULL, 3"
    )
    with database.engine.begin() as connection:
        connection.execute(
            text(
                f"INSERT INTO objects SELECT {row}, 0, NULL, NULL, NULL, 0, 0, 0, 1, NULL"
                " FROM generate_series(1, 50) n"
            )
        )
    migrate(database)
    assert get_object(database, ObjectLocation(b"p" * 16, "first", b"37")).stream_id == b"s37"
    database.close()
    postgres.drop(url)
