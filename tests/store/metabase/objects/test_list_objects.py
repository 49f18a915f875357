"""Listing objects: order, prefixes, delimiters, cursors; against a naive model."""

from __future__ import annotations

import itertools
import os
import random
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, func, insert, select

from calque.errors import InvalidInput, NotFound
from calque.store.metabase.accounts.create_bucket import CreateBucket, create_bucket
from calque.store.metabase.accounts.get_bucket import ListBuckets, get_bucket, list_buckets
from calque.store.metabase.engine.database import Database
from calque.store.metabase.model.records import ObjectLocation
from calque.store.metabase.model.schema import PENDING, objects
from calque.store.metabase.objects.commit_object import CommitObject, commit_object
from calque.store.metabase.objects.delete_batch import DeleteBucket, delete_bucket
from calque.store.metabase.objects.list_objects import (
    LEVEL_FROM,
    ListObjects,
    after_prefix,
    list_objects,
)
from tests.store.world import EMPTY, HOUR_US, Clock, World, lay_metabase


def _all(world: World, **options: object) -> list[tuple[bytes, bool]]:
    """Every item, collected over pages."""
    found: list[tuple[bytes, bool]] = []
    cursor: bytes | None = None
    more = True
    while more:
        request = ListObjects(world.project_id, "first", cursor=cursor, **options)  # type: ignore[arg-type]
        page = list_objects(world.database, request)
        found += [(item.key, item.object is None) for item in page.items]
        more, cursor = page.more, page.items[-1].key if page.items else None
    return found


def _model(keys: list[bytes], prefix: bytes, *, recursive: bool) -> list[tuple[bytes, bool]]:
    """What a listing must give, the slow way."""
    items: dict[tuple[bytes, bool], None] = {}
    for key in sorted(keys):
        if key.startswith(prefix):
            rest = key[len(prefix) :]
            head, slash, _ = rest.partition(b"/")
            if recursive or not slash:
                items[(rest, False)] = None
            else:
                items[(head + slash, True)] = None
    return list(items)


@pytest.mark.parametrize("limit", [1, 2, 1000])
def test_prefix_and_delimiter(world: World, limit: int) -> None:
    """Keys below a prefix, cut at the delimiter or not, in pages of any size."""
    keys = ["a", "a-", "a/b", "a/c/d", "a/c/e", "a/", "b/x", "b/y", "c", "é/1", "z/z/z"]
    for key in keys:
        world.upload(key, EMPTY)
    encoded = [key.encode() for key in keys]
    for prefix in (b"", b"a/", b"a/c/", b"b/", b"nothing/"):
        for recursive in (True, False):
            found = _all(world, prefix=prefix, recursive=recursive, limit=limit)
            assert found == _model(encoded, prefix, recursive=recursive)


def test_expired_and_pending_are_not_listed(world: World) -> None:
    """Only live committed objects are."""
    world.upload("a", EMPTY)
    world.upload("gone", EMPTY, expires_at=world.clock() + HOUR_US)
    world.begin(world.at("pending"))
    world.clock.advance(2 * HOUR_US)
    assert _all(world) == [(b"a", False)]


def test_pending_uploads(world: World) -> None:
    """Pending uploads are listed with their versions, several of one key, in pages."""
    streams = [world.begin(world.at("a")).stream_id for _ in range(3)]
    streams.append(world.begin(world.at("b")).stream_id)
    world.upload("a", EMPTY)
    found: list[bytes] = []
    cursor: bytes | None = None
    version, more = 0, True
    while more:
        page = list_objects(
            world.database,
            ListObjects(
                world.project_id,
                "first",
                status=PENDING,
                limit=2,
                cursor=cursor,
                after_version=version,
            ),
        )
        records = [item.object for item in page.items if item.object]
        found += [record.stream_id for record in records]
        cursor, version, more = records[-1].object_key, records[-1].version, page.more
    assert found == streams


def test_unknown_bucket(world: World) -> None:
    """A bucket that is not there is named."""
    with pytest.raises(NotFound, match="'nowhere'"):
        list_objects(world.database, ListObjects(world.project_id, "nowhere"))


@pytest.mark.parametrize(
    "changes", [{"limit": 0}, {"limit": 1001}, {"delimiter": b""}, {"status": 2}]
)
def test_malformed_requests(changes: dict[str, object]) -> None:
    """Requests check themselves."""
    with pytest.raises(InvalidInput):
        ListObjects(b"p" * 16, "first", **changes)  # type: ignore[arg-type]


@given(st.binary(max_size=6), st.binary(max_size=6))
def testafter_prefix(prefix: bytes, key: bytes) -> None:
    """Every key with the prefix sorts before the bound, every larger one does not."""
    bound = after_prefix(prefix)
    assert (prefix <= key < bound) == key.startswith(prefix)


alphabet = st.sampled_from([b"a", b"b", b"/", b"\xff", b"\0"])
key_strategy = st.lists(alphabet, min_size=1, max_size=5).map(b"".join)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    keys=st.lists(key_strategy, max_size=12, unique=True),
    prefix=st.sampled_from([b"", b"a/", b"/", b"b/a/", b"\xff/"]),
    recursive=st.booleans(),
    limit=st.integers(1, 4),
)
def test_listing_against_a_model(
    tmp_path_factory: pytest.TempPathFactory,
    keys: list[bytes],
    prefix: bytes,
    recursive: bool,
    limit: int,
) -> None:
    """Any keys, prefix and page size give what sorting and cutting gives."""
    path: Path = tmp_path_factory.mktemp("list") / "meta.db"
    lay_metabase(path)
    database = Database.open(f"sqlite:///{path}", clock=Clock())
    try:
        world = World(database, Clock())
        for key in keys:
            location = ObjectLocation(world.project_id, "first", key)
            pending = world.begin(location)
            commit_object(database, CommitObject(location, pending.stream_id))
        found = _all(world, prefix=prefix, recursive=recursive, limit=limit)
        assert found == _model(keys, prefix, recursive=recursive)
    finally:
        database.close()


def test_a_level_against_a_model(world: World) -> None:
    """Bytes of every kind, with all prefixes and pages, on both databases."""
    dice = random.Random("levels")
    keys = {bytes(dice.choices(b"ab/\xff\0\xc3", k=dice.randint(1, 5))) for _ in range(60)}
    for key in keys:
        pending = world.begin(ObjectLocation(world.project_id, "first", key))
        commit_object(world.database, CommitObject(pending.location, pending.stream_id))
    for prefix in (b"", b"a/", b"/", b"\xff/"):
        for limit in (1, 3, 1000):
            found = _all(world, prefix=prefix, recursive=False, limit=limit)
            assert found == _model(list(keys), prefix, recursive=False)


@pytest.mark.parametrize("delimiter", [b"/", b"//", b"-\xff", b"\xff", b"a"])
def test_other_delimiters(world: World, delimiter: bytes) -> None:
    """Whatever cuts keys into folders, each folder comes once."""
    names = [b"1", b"2" + delimiter, b"2" + delimiter + b"x", b"2" + delimiter + b"y", b"3"]
    for name in names:
        pending = world.begin(ObjectLocation(world.project_id, "first", name))
        commit_object(world.database, CommitObject(pending.location, pending.stream_id))
    found = _all(world, recursive=False, delimiter=delimiter, limit=2)
    assert found == [(b"1", False), (b"2" + delimiter, True), (b"3", False)]


def _rows_read(world: World) -> int:
    """Rows of ``objects`` (PostgreSQL) or steps (SQLite) for one level of the bucket."""
    parameters = {
        "project": world.project_id,
        "bucket": "first",
        "first": b"",
        "end": after_prefix(b""),
        "page": 1001,
        "now": world.clock(),
        "prefix_size": 0,
        "delimiter": b"/",
        "behind": b"0",
        "zero": b"\0",
    }
    database = world.database
    raw = database.engine.raw_connection()
    driver: Any = raw.driver_connection
    if database.dialect == "sqlite":
        steps = itertools.count()
        driver.set_progress_handler(lambda: next(steps) < 0, 1)
        driver.execute(LEVEL_FROM.sql("sqlite"), parameters).fetchall()
        driver.set_progress_handler(None, 0)
        raw.close()
        return next(steps)
    query, values = LEVEL_FROM.for_postgres(parameters)
    with psycopg.RawCursor(driver) as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {query}", values)
        (answer,) = cursor.fetchone() or ((),)
    raw.close()
    return _scanned(answer[0]["Plan"])


def _scanned(plan: dict[str, Any]) -> int:
    own = plan["Actual Rows"] * plan["Actual Loops"] if "Index Name" in plan else 0
    own += plan.get("Rows Removed by Filter", 0) * plan["Actual Loops"] if own else 0
    return int(own) + sum(_scanned(child) for child in plan.get("Plans", []))


def test_a_level_jumps_over_folders(world: World) -> None:
    """What a level costs does not grow with what lies below its folders."""
    for folder in range(5):
        world.upload(f"{folder}/first", EMPTY)
    before = _rows_read(world)
    template = select(objects).where(objects.c.object_key == b"0/first")
    with world.database.engine.begin() as connection:
        row = dict(connection.execute(template).mappings().one())
        for folder in range(5):
            connection.execute(
                insert(objects),
                [
                    {
                        **row,
                        "object_key": f"{folder}/more-{number}".encode(),
                        "stream_id": os.urandom(16),
                    }
                    for number in range(300)
                ],
            )
    after = _rows_read(world)
    assert _all(world, recursive=False) == [(b"%d/" % folder, True) for folder in range(5)]
    with world.database.engine.begin() as connection:
        connection.execute(delete(objects).where(func.length(objects.c.object_key) > 7))
    assert after <= 2 * before


def test_buckets(world: World) -> None:
    """Buckets are listed by name in pages; names follow S3's rules."""
    for name in ("a.b", "a-b", "zzz"):
        world.bucket(name)
    first, more = list_buckets(world.database, ListBuckets(world.project_id, limit=3))
    assert [bucket.name for bucket in first] == ["a-b", "a.b", "first"]
    assert more
    rest, more = list_buckets(
        world.database, ListBuckets(world.project_id, cursor="first", limit=3)
    )
    assert [bucket.name for bucket in rest] == ["second", "zzz"]
    assert not more
    assert get_bucket(world.database, world.project_id, "zzz").placement == 0
    list(delete_bucket(world.database, DeleteBucket(world.project_id, "zzz")))
    with pytest.raises(NotFound):
        get_bucket(world.database, world.project_id, "zzz")


@pytest.mark.parametrize("name", ["", "ab", "A", "a_b_c", "-abc", "abc.", "x" * 64, "a\0b", "ünï"])
def test_bucket_names(world: World, name: str) -> None:
    """Names that S3 would not take are refused."""
    with pytest.raises(InvalidInput):
        create_bucket(world.database, CreateBucket(world.project_id, name))
