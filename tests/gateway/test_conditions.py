"""Conditions of requests: on what is read, on what is copied, on what is replaced."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

from tests.gateway.test_gateway import refused
from tests.gateway.test_objects import status_of
from tests.gateway.world import World


def test_the_rest_of_an_object_that_changed(world: World, client: Any, bucket: str) -> None:
    """If-Range: the range of the object that was meant, else the whole of the new one."""
    put = client.put_object(Bucket=bucket, Key="k", Body=b"0123456789")
    told = client.head_object(Bucket=bucket, Key="k")["ResponseMetadata"]["HTTPHeaders"]
    for given, status in (
        (put["ETag"], 206),
        (told["last-modified"], 206),
        ('"other"', 200),
        (f"W/{put['ETag']}", 200),
        ("Mon, 16 Nov 2020 02:33:16 GMT", 200),
        ("nonsense", 200),
    ):
        headers = {"range": "bytes=5-", "if-range": given}
        answer = world.ask("GET", f"/{bucket}/k", "", headers)
        assert (answer.status, answer.body) == (
            status, b"56789" if status == 206 else b"0123456789"
        ), given  # fmt: skip


def test_conditions_of_a_read(client: Any, bucket: str) -> None:
    """If-Match before If-Unmodified-Since, If-None-Match before If-Modified-Since, as RFC 9110."""
    etag = client.put_object(Bucket=bucket, Key="k", Body=b"x")["ETag"]
    then = client.head_object(Bucket=bucket, Key="k")["LastModified"]
    before, after = then - timedelta(hours=1), then + timedelta(hours=1)
    cases: list[tuple[dict[str, Any], int]] = [
        ({"IfMatch": etag}, 200),
        ({"IfMatch": "*"}, 200),
        ({"IfMatch": '"other"'}, 412),
        ({"IfNoneMatch": etag}, 304),
        ({"IfNoneMatch": '"other"'}, 200),
        ({"IfModifiedSince": before}, 200),
        ({"IfModifiedSince": then}, 304),
        ({"IfUnmodifiedSince": before}, 412),
        ({"IfUnmodifiedSince": then}, 200),
        ({"IfMatch": etag, "IfUnmodifiedSince": before}, 200),
        ({"IfNoneMatch": '"other"', "IfModifiedSince": after}, 200),
        ({"IfNoneMatch": etag, "IfModifiedSince": before}, 304),
        ({"IfMatch": '"other"', "IfNoneMatch": etag}, 412),
    ]
    for conditions, status in cases:
        for call in (client.get_object, client.head_object):
            found = status_of(call, Bucket=bucket, Key="k", **conditions)
            assert found == status, conditions


def test_sixteen_writers_and_one_winner(world: World, bucket: str) -> None:
    """If-None-Match: * is checked in the commit: one is 200, fifteen are 412, its bytes stay."""
    ready = threading.Barrier(16)

    def write(number: int) -> int:
        client = world.client()
        ready.wait()
        return status_of(
            client.put_object, Bucket=bucket, Key="one", Body=b"%d" % number, IfNoneMatch="*"
        )

    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(write, range(16)))
    assert sorted(found) == [200] + [412] * 15
    got = world.client().get_object(Bucket=bucket, Key="one")["Body"].read()
    assert got == b"%d" % found.index(200)


def test_conditions_of_a_write(client: Any, bucket: str) -> None:
    """PUT, DELETE and copies with If-Match leave the target as it was when they fail."""
    etag = client.put_object(Bucket=bucket, Key="k", Body=b"1")["ETag"]
    args = {"Bucket": bucket, "Key": "k"}
    refused("PreconditionFailed", client.put_object, **args, Body=b"2", IfMatch='"0"')
    refused("PreconditionFailed", client.put_object, **args, Body=b"2", IfNoneMatch="*")
    refused("PreconditionFailed", client.delete_object, **args, IfMatch='"0"')
    refused("NoSuchKey", client.put_object, Bucket=bucket, Key="no", Body=b"", IfMatch=etag)
    assert client.get_object(**args)["Body"].read() == b"1"
    etag = client.put_object(**args, Body=b"2", IfMatch=etag)["ETag"]
    client.put_object(Bucket=bucket, Key="source", Body=b"s")
    source = f"{bucket}/source"
    refused("PreconditionFailed", client.copy_object, **args, CopySource=source, IfNoneMatch="*")
    refused("PreconditionFailed", client.copy_object, **args, CopySource=source, IfMatch='"0"')
    refused(
        "PreconditionFailed", client.copy_object, **args, CopySource=source, CopySourceIfMatch='"0"'
    )
    assert client.get_object(**args)["Body"].read() == b"2"
    client.copy_object(**args, CopySource=source, IfMatch=etag)
    assert client.get_object(**args)["Body"].read() == b"s"
    client.delete_object(**args, IfMatch=client.head_object(**args)["ETag"])
    refused("NoSuchKey", client.get_object, **args)


def test_writes_over_anything_but_one_version(client: Any, bucket: str) -> None:
    """If-None-Match of an ETag: refused over that very contents, and kept in the commit."""
    args = {"Bucket": bucket, "Key": "k"}
    etag = client.put_object(**args, Body=b"1", IfNoneMatch='"none"')["ETag"]
    refused("PreconditionFailed", client.put_object, **args, Body=b"2", IfNoneMatch=etag)
    refused(
        "PreconditionFailed", client.put_object, **args, Body=b"2", IfMatch=etag, IfNoneMatch=etag
    )
    assert client.get_object(**args)["Body"].read() == b"1"
    client.put_object(**args, Body=b"2", IfNoneMatch='"none"')
    client.put_object(**args, Body=b"3", IfNoneMatch=etag)
    assert client.get_object(**args)["Body"].read() == b"3"
