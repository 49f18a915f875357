"""Listing: the byte order of plain keys, by any prefix, one level or all."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calque.errors import IntegrityError, NotFound
from calque.store.uplink.encryption.access import EncryptionAccess
from calque.store.uplink.encryption.keys import SecretKey
from calque.store.uplink.grant import AccessGrant
from calque.store.uplink.objects import ObjectInfo, PrefixInfo
from tests.store_client.world import BUCKET, World

KEYS = [
    "a", "a-b", "a/", "a//", "a//b", "a/b", "a/b/c", "a0", "/", "/x", "//", "ä/ö", "z/\U0001f600",
    "b/1", "b/10", "b/2", "b/3", "b/4", "deep/er/and/deeper", "z", "%2F/..", "line\nbreak/\x7f",
]  # fmt: skip


def by_bytes(keys: list[str]) -> list[str]:
    return sorted(keys, key=str.encode)


def one_level(keys: list[str], prefix: str) -> list[str]:
    """The naive model of a listing of one level."""
    shown = set()
    for key in keys:
        if key.startswith(prefix):
            name, slash, _ = key[len(prefix) :].partition("/")
            shown.add(prefix + name + slash)
    return by_bytes(list(shown))


@pytest.mark.parametrize("key", ["/" * 1024, "a/" * 512, "ab/" * 341 + "c"], ids=["/", "a", "ab"])
def test_keys_with_many_components(
    any_database: str | None, make_world: Callable[..., World], key: str
) -> None:
    """A key of 1,024 bytes lives as any other does, however many components it has."""
    world = make_world(database=any_database)
    project, other = world.project, key[:-1] + "z"
    project.upload(BUCKET, key, b"x" * 5000)
    project.copy_object(BUCKET, key, BUCKET, "short")
    project.move_object(BUCKET, "short", BUCKET, other)
    assert [entry.key for entry in project.list_objects(BUCKET)] == by_bytes([key, other])
    assert project.delete_object(BUCKET, key)
    assert project.download(BUCKET, other).read() == b"x" * 5000


@pytest.fixture
def listed(plain_world: World) -> World:
    for key in KEYS:
        plain_world.project.upload(BUCKET, key, key.encode(), metadata={"name": key})
    return plain_world


def test_all_keys_in_byte_order(listed: World) -> None:
    """Every key, strange ones too, comes once and in order."""
    assert listed.keys() == by_bytes(KEYS)


PREFIXES = ["", "a", "a/", "a//", "a/b", "b/1", "z", "/", "//", "nothing", "deep/er/a"]


@pytest.mark.parametrize("prefix", PREFIXES)
def test_prefixes_are_plain_strings(listed: World, prefix: str) -> None:
    """A prefix need not end at a slash; one level is what a naive model says."""
    project = listed.project
    found = [entry.key for entry in project.list_objects(BUCKET, prefix)]
    assert found == by_bytes([key for key in KEYS if key.startswith(prefix)])
    level = [entry.key for entry in project.list_objects(BUCKET, prefix, recursive=False)]
    assert level == one_level(KEYS, prefix)


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(st.sampled_from([*KEYS, "a.", "b/11", "deep/", "deep/er/z"]), st.booleans())
def test_start_after(listed: World, after: str, recursive: bool) -> None:
    """Entries strictly after a key, whether that key exists or not."""
    found = [
        entry.key
        for entry in listed.project.list_objects(BUCKET, start_after=after, recursive=recursive)
    ]
    everything = by_bytes(KEYS) if recursive else one_level(KEYS, "")
    assert found == [key for key in everything if key.encode() > after.encode()]


def test_entries_say_what_they_are(listed: World) -> None:
    """Objects carry size and, when asked for, metadata; levels are prefixes."""
    entries = list(listed.project.list_objects(BUCKET, "a", recursive=False, with_metadata=True))
    kinds = {entry.key: entry for entry in entries}
    assert isinstance(kinds["a/"], PrefixInfo)
    a = kinds["a"]
    assert isinstance(a, ObjectInfo)
    assert (a.size, dict(a.metadata)) == (1, {"name": "a"})
    bare = next(iter(listed.project.list_objects(BUCKET, "a0")))
    assert isinstance(bare, ObjectInfo)
    assert dict(bare.metadata) == {}


def test_every_key_downloads(listed: World) -> None:
    """Every name, however strange, gives its own bytes back."""
    for key in KEYS:
        assert listed.project.download(BUCKET, key).read() == key.encode()


def test_buckets_are_listed_by_pages(plain_world: World) -> None:
    """More buckets than a page holds all come, by name."""
    for number in range(5):
        plain_world.project.create_bucket(f"bucket-{number}")
    names = [bucket.name for bucket in plain_world.project.list_buckets()]
    assert names == ["archive", *(f"bucket-{n}" for n in range(5)), "photos"]
    with pytest.raises(NotFound, match="missing"):
        plain_world.project.stat_bucket("missing")


def test_another_passphrase_sees_no_name(listed: World) -> None:
    """With another root key names are not guessed: the listing says why it fails."""
    ours = listed.project.access
    foreign = AccessGrant(ours.address, ours.api_key, EncryptionAccess(root=SecretKey(bytes(32))))
    theirs = listed.through(foreign)
    with pytest.raises(IntegrityError, match="another passphrase") as caught:
        list(theirs.list_objects(BUCKET))
    assert "another passphrase" in str(caught.value)
    with pytest.raises(NotFound):
        theirs.download(BUCKET, "a")
