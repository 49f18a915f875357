"""UploadPartCopy: parts that are ranges of objects, without a byte from the nodes."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from boto3.s3.transfer import TransferConfig
from botocore.exceptions import ClientError

from calque.store.upkeep.fsck import check_store
from calque.values import MIB
from tests.gateway.test_gateway import refused
from tests.gateway.test_multipart import begin, complete
from tests.gateway.world import World, gateway_world

PART = 5 * MIB
BYTES = os.urandom(2 * PART + 4321)


def copy_part(
    client: Any,
    upload: dict[str, Any],
    number: int,
    source: str,
    span: str | None = None,
    **more: Any,
) -> dict[str, Any]:
    if span:
        more["CopySourceRange"] = span
    made = client.upload_part_copy(**upload, PartNumber=number, CopySource=source, **more)
    return {"PartNumber": number, "ETag": made["CopyPartResult"]["ETag"]}


def node_bytes(world: World) -> int:
    """Bytes that lie on the nodes."""
    return sum(
        path.stat().st_size for path in (world.store.folder / "nodes").rglob("*") if path.is_file()
    )


def test_boto3_copies_a_large_object(world: World, client: Any, bucket: str) -> None:
    """Ranges that join to the whole become an ordinary copy: nothing is stored, nothing read."""
    client.put_object(Bucket=bucket, Key="from", Body=BYTES)
    before = node_bytes(world)
    config = TransferConfig(multipart_threshold=PART, multipart_chunksize=PART)
    client.copy({"Bucket": bucket, "Key": "from"}, bucket, "to", Config=config)
    assert node_bytes(world) == before
    assert client.get_object(Bucket=bucket, Key="to")["Body"].read() == BYTES
    assert client.head_object(Bucket=bucket, Key="to")["ETag"].endswith('-3"')
    client.delete_object(Bucket=bucket, Key="from")
    assert client.get_object(Bucket=bucket, Key="to")["Body"].read() == BYTES
    assert check_store(world.store, young=True) == []


def test_ranges_of_several_objects(world: World, client: Any, bucket: str) -> None:
    """Slices that begin and end anywhere, of several sources, with parts that were sent between."""
    other = os.urandom(PART + 77)
    client.put_object(Bucket=bucket, Key="a", Body=BYTES)
    client.put_object(Bucket=bucket, Key="b", Body=other)
    before = node_bytes(world)
    upload = begin(client, bucket, "made")
    one, two = (7, PART + 100), (3, PART + 9)
    parts = [
        copy_part(client, upload, 1, f"{bucket}/a", f"bytes={one[0]}-{one[1]}"),
        copy_part(client, upload, 2, f"{bucket}/b", f"bytes={two[0]}-{two[1]}"),
        {
            "PartNumber": 3,
            "ETag": client.upload_part(**upload, PartNumber=3, Body=b"the end")["ETag"],
        },
    ]
    expected = BYTES[one[0] : one[1] + 1] + other[two[0] : two[1] + 1] + b"the end"
    listed = client.list_parts(**upload)["Parts"]
    assert [each["ETag"] for each in listed] == [each["ETag"] for each in parts]
    assert sum(each["Size"] for each in listed) == len(expected)
    client.delete_object(Bucket=bucket, Key="a")
    complete(client, upload, parts)
    assert node_bytes(world) == before
    assert client.get_object(Bucket=bucket, Key="made")["Body"].read() == expected
    ranged = client.get_object(Bucket=bucket, Key="made", Range=f"bytes={PART}-{PART + 200}")
    assert ranged["Body"].read() == expected[PART : PART + 201]
    client.delete_object(Bucket=bucket, Key="b")
    assert client.get_object(Bucket=bucket, Key="made")["Body"].read() == expected
    client.copy_object(Bucket=bucket, Key="again", CopySource=f"{bucket}/made")
    client.delete_object(Bucket=bucket, Key="made")
    assert client.get_object(Bucket=bucket, Key="again")["Body"].read() == expected
    assert check_store(world.store, young=True) == []


def test_what_is_refused(client: Any, bucket: str) -> None:
    """Ranges outside the source, sources that are not there or not the ones that were meant."""
    client.put_object(Bucket=bucket, Key="a", Body=b"0123456789")
    upload = begin(client, bucket)
    source = f"{bucket}/a"
    for span in ("bytes=0-10", "bytes=5-", "bytes=9-1", "0-5"):
        refused(
            "InvalidRange" if span == "bytes=0-10" else "InvalidArgument",
            copy_part,
            client=client,
            upload=upload,
            number=1,
            source=source,
            span=span,
        )
    refused("NoSuchKey", copy_part, client=client, upload=upload, number=1, source=f"{bucket}/none")
    refused(
        "PreconditionFailed",
        copy_part,
        client=client,
        upload=upload,
        number=1,
        source=source,
        CopySourceIfMatch='"0"',
    )
    etag = client.head_object(Bucket=bucket, Key="a")["ETag"]
    copy_part(client, upload, 1, source, "bytes=0-4", CopySourceIfMatch=etag)
    client.put_object(Bucket=bucket, Key="a", Body=b"01234other")
    refused(
        "PreconditionFailed",
        copy_part,
        client=client,
        upload=upload,
        number=2,
        source=source,
        span="bytes=5-9",
        CopySourceIfMatch=etag,
    )
    part = copy_part(client, upload, 1, source, "bytes=2-4")
    complete(client, upload, [part])
    assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == b"234"


def test_sources_that_expire_at_other_times(world: World, client: Any, bucket: str) -> None:
    """An object has one expiry: a source of another is refused, and no part is made of it."""
    soon = datetime.now(UTC) + timedelta(days=2)
    world.project.upload(bucket, "soon", b"s" * 100_000, expires=soon)
    world.project.upload(bucket, "never", b"n" * 100_000)
    upload = begin(client, bucket)
    part = copy_part(client, upload, 1, f"{bucket}/soon")
    with pytest.raises(ClientError) as caught:
        copy_part(client, upload, 2, f"{bucket}/never")
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 409
    assert "expires at another time" in caught.value.response["Error"]["Message"]
    complete(client, upload, [part])
    found = world.project.stat(bucket, "k").expires
    assert found is not None
    assert abs(found - soon) < timedelta(seconds=1)


@pytest.mark.soak
def test_a_gigabyte_by_boto3(tmp_path: Path) -> None:
    """128 part copies of 8 MiB: no byte from the nodes, equal byte for byte, also afterwards."""
    with gateway_world(tmp_path / "data") as world:
        client = world.client()
        client.create_bucket(Bucket="box")
        block = os.urandom(64 * MIB)
        with open(tmp_path / "file", "wb") as out:
            for _ in range(16):
                out.write(block)
        client.upload_file(str(tmp_path / "file"), "box", "from")
        before = node_bytes(world)
        client.copy({"Bucket": "box", "Key": "from"}, "box", "to")
        assert node_bytes(world) == before
        client.delete_object(Bucket="box", Key="from")
        got = client.get_object(Bucket="box", Key="to")["Body"]
        for _ in range(16):
            assert got.read(64 * MIB) == block
        assert got.read() == b""
