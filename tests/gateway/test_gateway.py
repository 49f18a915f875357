"""The door itself: buckets and objects by boto3, as anybody would use them."""

from __future__ import annotations

import hashlib
import os
import uuid
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.gateway.world import World

NAMES = [
    "a",
    "a b+c/ü//x",
    "%41",
    "..",
    "a/../b",
    "dir/",
    "日本語",
    "é&<>\"'",
    "~!*()",
    "//",
    "a+b",
]


def refused(code: str, call: Any, **arguments: Any) -> None:
    with pytest.raises(ClientError) as caught:
        call(**arguments)
    assert caught.value.response["Error"]["Code"] == code


def test_a_bucket_from_its_making_to_its_end(client: Any) -> None:
    """A bucket is made, made again without harm, seen, refused to go with objects, and goes."""
    name = f"b{uuid.uuid4().hex[:12]}"
    client.create_bucket(Bucket=name)
    client.create_bucket(Bucket=name)
    assert name in [each["Name"] for each in client.list_buckets()["Buckets"]]
    assert client.head_bucket(Bucket=name)["BucketRegion"] == "us-east-1"
    assert client.get_bucket_location(Bucket=name).get("LocationConstraint") is None
    assert "Status" not in client.get_bucket_versioning(Bucket=name)
    client.put_object(Bucket=name, Key="k", Body=b"x")
    refused("BucketNotEmpty", client.delete_bucket, Bucket=name)
    client.delete_object(Bucket=name, Key="k")
    client.delete_bucket(Bucket=name)
    refused("404", client.head_bucket, Bucket=name)
    refused("NoSuchBucket", client.list_objects_v2, Bucket=name)


@pytest.mark.parametrize("name", ["ab", "Upper", "a_b", "a..b", "-ab", "192.168.5.123", "a" * 64])
def test_names_that_no_bucket_has(world: World, name: str) -> None:
    """InvalidBucketName, and no bucket."""
    assert world.ask("PUT", f"/{name}").code == "InvalidBucketName"


@pytest.mark.parametrize("size", [0, 1, 4096, 4097, 300_000, 3_000_000])
def test_bytes_come_back_as_they_went(client: Any, bucket: str, size: int) -> None:
    """Whatever its size, an object has its bytes, its MD5 as ETag, and its checksum."""
    data = os.urandom(size)
    put = client.put_object(Bucket=bucket, Key="k", Body=data)
    assert put["ETag"] == f'"{hashlib.md5(data).hexdigest()}"'
    got = client.get_object(Bucket=bucket, Key="k")
    assert got["Body"].read() == data
    assert (got["ETag"], got["ChecksumCRC32"]) == (put["ETag"], put["ChecksumCRC32"])
    head = client.head_object(Bucket=bucket, Key="k")
    assert head["ContentLength"] == size


@pytest.mark.parametrize("name", NAMES)
def test_names_are_what_they_are(client: Any, bucket: str, name: str) -> None:
    """No name is normalised, decoded twice or cut, in requests and in listings."""
    client.put_object(Bucket=bucket, Key=name, Body=name.encode())
    assert client.get_object(Bucket=bucket, Key=name)["Body"].read() == name.encode()
    listed = client.list_objects_v2(Bucket=bucket)["Contents"]
    assert [each["Key"] for each in listed] == [name]


def test_what_is_missing_is_named(client: Any, bucket: str) -> None:
    """A missing key and a missing bucket have errors of their own; a missing key is deleted."""
    refused("NoSuchKey", client.get_object, Bucket=bucket, Key="none")
    refused("NoSuchBucket", client.get_object, Bucket="not-" + bucket, Key="none")
    refused("NoSuchBucket", client.put_object, Bucket="not-" + bucket, Key="none", Body=b"")
    assert (
        client.delete_object(Bucket=bucket, Key="none")["ResponseMetadata"]["HTTPStatusCode"] == 204
    )


def test_names_that_are_too_long(client: Any, bucket: str) -> None:
    """1,024 bytes are a key, one more is not; another's bucket is not taken for ours."""
    client.put_object(Bucket=bucket, Key="k" * 1024, Body=b"x")
    refused("KeyTooLongError", client.put_object, Bucket=bucket, Key="k" * 1025, Body=b"x")
    owner = {"Bucket": bucket, "ExpectedBucketOwner": "123456789012"}
    refused("AccessDenied", client.list_objects_v2, **owner)


def test_other_doors_show_the_same(world: World, client: Any, bucket: str) -> None:
    """What S3 stored the store's own client reads, with its metadata, and the other way round."""
    client.put_object(
        Bucket=bucket, Key="s3", Body=b"1", Metadata={"Colour": "red"}, ContentType="text/x"
    )
    info = world.project.stat(bucket, "s3")
    assert info.metadata["colour"] == "red"
    assert info.metadata["calque:content_type"] == "text/x"
    world.project.upload(bucket, "own", b"22", metadata={"size": "large"})
    got = client.get_object(Bucket=bucket, Key="own")
    assert (got["Body"].read(), got["Metadata"]) == (b"22", {"size": "large"})
    assert "-" in got["ETag"], "an ETag that is no MD5 must not look like one"
