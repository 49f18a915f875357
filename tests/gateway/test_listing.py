"""Listings, both versions, held against a naive one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.gateway.test_gateway import refused
from tests.gateway.world import World

KEYS = [
    "a",
    "a-",
    "a/",
    "a/b",
    "a/b/c",
    "a/c",
    "a0",
    "b",
    "b//x",
    "b/ü",
    "c d",
    "c+d",
    "é",
    "z\U0001f600",
]


@pytest.fixture(scope="module")
def full(world: World) -> str:
    """A bucket with those keys."""
    world.project.create_bucket("listing")
    for key in KEYS:
        world.project.upload("listing", key, key.encode())
    return "listing"


def naive(prefix: str, delimiter: str) -> list[str]:
    """Keys and common prefixes by the book, in byte order."""
    found: list[str] = []
    for key in sorted(KEYS, key=str.encode):
        if not key.startswith(prefix):
            continue
        at = key.find(delimiter, len(prefix)) if delimiter else -1
        entry = key if at < 0 else key[: at + len(delimiter)]
        if entry not in found:
            found.append(entry)
    return found


def pages(client: Any, verb: str, **arguments: Any) -> list[str]:
    """What a paginator of boto3 gives: keys and prefixes of each page, in order."""
    size = arguments.pop("size")
    found: list[str] = []
    for page in client.get_paginator(verb).paginate(
        **arguments, PaginationConfig={"PageSize": size}
    ):
        entries = [each["Key"] for each in page.get("Contents", [])]
        entries += [each["Prefix"] for each in page.get("CommonPrefixes", [])]
        found += sorted(entries, key=str.encode)
    return found


@pytest.mark.parametrize("verb", ["list_objects", "list_objects_v2"])
@pytest.mark.parametrize("delimiter", ["", "/", "b", "/b"])
@pytest.mark.parametrize("prefix", ["", "a", "a/", "none"])
def test_every_key_once_in_byte_order(
    client: Any, full: str, verb: str, delimiter: str, prefix: str
) -> None:
    """Whatever the prefix, the delimiter and the size of a page."""
    for size in (1, 3, 1000):
        found = pages(client, verb, Bucket=full, Prefix=prefix, Delimiter=delimiter, size=size)
        assert found == naive(prefix, delimiter), size


@settings(max_examples=30, deadline=None)
@given(
    after=st.text(alphabet="abz/-0é", max_size=4),
    prefix=st.sampled_from(["", "a", "a/", "b"]),
)
def test_start_after(client: Any, full: str, after: str, prefix: str) -> None:
    """Keys strictly after a text, whether it is a key or not."""
    listed = client.list_objects_v2(Bucket=full, StartAfter=after, Prefix=prefix)
    found = [each["Key"] for each in listed.get("Contents", [])]
    assert found == [key for key in naive(prefix, "") if key.encode() > after.encode()]


def test_the_document(client: Any, world: World, full: str) -> None:
    """Counts, owners on demand, names encoded on demand, a page of none."""
    listed = client.list_objects_v2(Bucket=full, MaxKeys=2, FetchOwner=True)
    assert (listed["KeyCount"], listed["IsTruncated"], listed["MaxKeys"]) == (2, True, 2)
    assert listed["Contents"][0]["Owner"]["ID"]
    assert "Owner" not in client.list_objects_v2(Bucket=full)["Contents"][0]
    none = client.list_objects_v2(Bucket=full, MaxKeys=0)
    assert (none["KeyCount"], none["IsTruncated"]) == (0, False)
    plain = world.ask("GET", f"/{full}", "list-type=2&prefix=c").body
    assert b"<Key>c d</Key>" in plain
    encoded = world.ask("GET", f"/{full}", "list-type=2&prefix=c&encoding-type=url").body
    assert b"<Key>c%20d</Key>" in encoded
    refused("InvalidArgument", client.list_objects_v2, Bucket=full, ContinuationToken="§")
    assert world.ask("GET", f"/{full}", "list-type=2&max-keys=-1").code == "InvalidArgument"
    assert world.ask("GET", f"/{full}", "list-type=2&encoding-type=x").code == "InvalidArgument"


def test_what_was_asked_is_told_as_it_was_asked(client: Any, full: str) -> None:
    """A prefix and a delimiter come back as boto3 sent them; an empty token is none."""
    for verb in (client.list_objects, client.list_objects_v2):
        page = verb(Bucket=full, Prefix="\n ", Delimiter="\n+")
        assert (page["Prefix"], page["Delimiter"]) == ("\n ", "\n+")
    assert client.list_objects_v2(Bucket=full, ContinuationToken="")["KeyCount"] > 0


def test_keys_that_xml_cannot_hold(client: Any, bucket: str) -> None:
    """Control characters come back whole: boto3 asks for names that are encoded."""
    for key in ("bell\x07", "line\nbreak", "cr\r", "<&>"):
        client.put_object(Bucket=bucket, Key=key, Body=b"")
    found = [each["Key"] for each in client.list_objects_v2(Bucket=bucket)["Contents"]]
    assert sorted(found) == sorted(["bell\x07", "line\nbreak", "cr\r", "<&>"])


@pytest.mark.parametrize("delimiter", ["/", ",", "\n"])
def test_keys_behind_the_last_character(client: Any, bucket: str, delimiter: str) -> None:
    """A common prefix is shown once, whatever lies below it, and pages come to an end."""
    last = "\U0010ffff"
    keys = [f"a{delimiter}", f"a{delimiter}b", f"a{delimiter}{last}", f"a{delimiter}{last * 2}z"]
    for key in [*keys, "b", f"c{delimiter}{last}x"]:
        client.put_object(Bucket=bucket, Key=key, Body=b"")
    found: list[str] = []
    token: dict[str, str] = {}
    for _ in range(9):
        page = client.list_objects_v2(Bucket=bucket, Delimiter=delimiter, MaxKeys=1, **token)
        found += [each["Prefix"] for each in page.get("CommonPrefixes", [])]
        found += [each["Key"] for each in page.get("Contents", [])]
        if not page["IsTruncated"]:
            break
        token = {"ContinuationToken": page["NextContinuationToken"]}
    assert found == [f"a{delimiter}", "b", f"c{delimiter}"]
    whole = client.list_objects_v2(Bucket=bucket, Delimiter=delimiter)
    assert whole["KeyCount"] == 3
