"""Listing objects: order, prefixes, delimiters, cursors; against a naive model."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calque.errors import InvalidInput, NotFound
from calque.store.metabase.commit_object import CommitObject, commit_object
from calque.store.metabase.create_bucket import CreateBucket, create_bucket
from calque.store.metabase.database import Database
from calque.store.metabase.delete_batch import DeleteBucket, delete_bucket
from calque.store.metabase.get_bucket import ListBuckets, get_bucket, list_buckets
from calque.store.metabase.list_objects import ListObjects, _after_prefix, list_objects
from calque.store.metabase.migrate import migrate
from calque.store.metabase.schema import PENDING
from calque.store.metabase.values import ObjectLocation
from tests.store.world import EMPTY, HOUR_US, Clock, World


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
def test_after_prefix(prefix: bytes, key: bytes) -> None:
    """Every key with the prefix sorts before the bound, every larger one does not."""
    bound = _after_prefix(prefix)
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
    database = Database.open(f"sqlite:///{path}", clock=Clock())
    try:
        migrate(database)
        world = World(database, Clock())
        for key in keys:
            location = ObjectLocation(world.project_id, "first", key)
            pending = world.begin(location)
            commit_object(database, CommitObject(location, pending.stream_id))
        found = _all(world, prefix=prefix, recursive=recursive, limit=limit)
        assert found == _model(keys, prefix, recursive=recursive)
    finally:
        database.close()


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
