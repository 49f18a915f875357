"""Uploads in parts, by boto3."""

from __future__ import annotations

import base64
import hashlib
import os
import zlib
from typing import Any

import pytest
from boto3.s3.transfer import TransferConfig

from calque.gateway.gateway import Gateway
from calque.gateway.server import serve_gateway
from calque.values import MIB
from tests.gateway.test_gateway import refused
from tests.gateway.world import World

PART = 5 * MIB
BYTES = os.urandom(2 * PART + 1000)


def begin(client: Any, bucket: str, key: str = "k", **told: Any) -> dict[str, Any]:
    made = client.create_multipart_upload(Bucket=bucket, Key=key, **told)
    return {"Bucket": bucket, "Key": key, "UploadId": made["UploadId"]}


def send(
    client: Any, upload: dict[str, Any], number: int, data: bytes, **more: Any
) -> dict[str, Any]:
    put = client.upload_part(**upload, PartNumber=number, Body=data, **more)
    kept = {name: value for name, value in put.items() if name.startswith(("ETag", "Checksum"))}
    return {"PartNumber": number, **kept}


def complete(client: Any, upload: dict[str, Any], parts: list[dict[str, Any]], **more: Any) -> Any:
    return client.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts}, **more)


@pytest.mark.parametrize("kind", ["COMPOSITE", "FULL_OBJECT"])
def test_an_upload_in_parts(client: Any, bucket: str, kind: str) -> None:
    """Parts in any order become one object; ETag and checksum are made without reading it."""
    upload = begin(
        client, bucket, ChecksumAlgorithm="CRC32", ChecksumType=kind, Metadata={"a": "b"}
    )
    pieces = [BYTES[:PART], BYTES[PART : 2 * PART], BYTES[2 * PART :]]
    parts = {number: send(client, upload, number, pieces[number - 1]) for number in (3, 1, 2)}
    listed = client.list_parts(**upload)
    assert [each["Size"] for each in listed["Parts"]] == [len(each) for each in pieces]
    assert listed["ChecksumType"] == kind
    refused(
        "BadDigest",
        complete,
        client=client,
        upload=upload,
        parts=[parts[1], parts[2], parts[3]],
        ChecksumCRC32="AAAAAA==",
    )
    done = complete(client, upload, [parts[1], parts[2], parts[3]])
    digests = b"".join(hashlib.md5(each).digest() for each in pieces)
    assert done["ETag"] == f'"{hashlib.md5(digests).hexdigest()}-3"'
    if kind == "FULL_OBJECT":
        whole = zlib.crc32(BYTES).to_bytes(4, "big")
        assert done["ChecksumCRC32"] == base64.b64encode(whole).decode()
    else:
        assert done["ChecksumCRC32"].endswith("-3")
    again = complete(
        client,
        upload,
        [parts[1], parts[2], parts[3]],
        ChecksumCRC32=done["ChecksumCRC32"],
    )
    assert again["ETag"] == done["ETag"]
    got = client.get_object(Bucket=bucket, Key="k")
    assert got["Body"].read() == BYTES
    assert got["Metadata"] == {"a": "b"}
    second = client.get_object(Bucket=bucket, Key="k", PartNumber=2)
    assert (second["Body"].read(), second["PartsCount"]) == (pieces[1], 3)
    assert second["ChecksumCRC32"] == parts[2]["ChecksumCRC32"], "the part's own"
    asked = {"ObjectAttributes": ["ObjectParts"], "MaxParts": 2}
    found = client.get_object_attributes(Bucket=bucket, Key="k", **asked)["ObjectParts"]
    assert (found["TotalPartsCount"], found["IsTruncated"]) == (3, True)
    assert [each["Size"] for each in found["Parts"]] == [PART, PART]
    refused("NoSuchUpload", client.list_parts, **upload)


def test_what_complete_refuses(client: Any, bucket: str) -> None:
    """Order, etags, missing and small parts are refused, and the upload is still there."""
    upload = begin(client, bucket)
    one, two, three = (send(client, upload, n, b"x" * n) for n in (1, 2, 3))
    refused("InvalidPartOrder", complete, client=client, upload=upload, parts=[two, one])
    refused("EntityTooSmall", complete, client=client, upload=upload, parts=[one, two])
    wrong = {"PartNumber": 1, "ETag": '"00000000000000000000000000000000"'}
    refused("InvalidPart", complete, client=client, upload=upload, parts=[wrong])
    refused("InvalidPart", complete, client=client, upload=upload, parts=[{**one, "PartNumber": 9}])
    refused("MalformedXML", complete, client=client, upload=upload, parts=[])
    for given, code in (({"IfMatch": "*"}, "NoSuchKey"), ({"IfMatch": '"0"'}, "NoSuchKey")):
        refused(code, complete, client=client, upload=upload, parts=[three], **given)
    complete(client, upload, [three], IfNoneMatch="*")
    assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == b"xxx", "others are dropped"
    again = begin(client, bucket)
    part = send(client, again, 1, b"later")
    for given in ({"IfNoneMatch": "*"}, {"IfMatch": '"0"'}):
        refused("PreconditionFailed", complete, client=client, upload=again, parts=[part], **given)
    assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == b"xxx"
    complete(client, again, [part], IfMatch=client.head_object(Bucket=bucket, Key="k")["ETag"])


def test_a_part_again_and_an_abort(client: Any, bucket: str) -> None:
    """A part that comes again replaces the first; an aborted upload leaves nothing."""
    upload = begin(client, bucket)
    send(client, upload, 1, b"first")
    part = send(client, upload, 1, b"second")
    complete(client, upload, [part])
    assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == b"second"
    given_up = begin(client, bucket, "other")
    send(client, given_up, 1, b"x")
    assert [each["Key"] for each in client.list_multipart_uploads(Bucket=bucket)["Uploads"]] == [
        "other"
    ]
    client.abort_multipart_upload(**given_up)
    refused("NoSuchUpload", client.abort_multipart_upload, **given_up)
    assert "Uploads" not in client.list_multipart_uploads(Bucket=bucket)
    refused("NoSuchKey", client.get_object, Bucket=bucket, Key="other")


def test_uploads_are_listed_page_by_page(client: Any, bucket: str) -> None:
    """Every upload comes once, by key, whatever the size of a page; a delimiter folds them."""
    begun = [begin(client, bucket, key) for key in ("b", "a/x", "a/y", "a/y", "c")]
    pages = client.get_paginator("list_multipart_uploads").paginate(
        Bucket=bucket, PaginationConfig={"PageSize": 2}
    )
    found = [(each["Key"], each["UploadId"]) for page in pages for each in page.get("Uploads", [])]
    assert [key for key, _ in found] == ["a/x", "a/y", "a/y", "b", "c"]
    assert {upload for _, upload in found} == {each["UploadId"] for each in begun}
    folded = client.list_multipart_uploads(Bucket=bucket, Delimiter="/")
    assert [each["Prefix"] for each in folded["CommonPrefixes"]] == ["a/"]


def test_pages_of_uploads_read_them_once(world: World, bucket: str) -> None:
    """A page costs a page: those that follow the first ask the store for no upload again."""
    client = world.client()
    begun = [begin(client, bucket, f"many/{number % 7}/{number}") for number in range(21)]
    listed = count_calls(world, "ListObjects")
    pages = client.get_paginator("list_multipart_uploads").paginate(
        Bucket=bucket, Prefix="many/", PaginationConfig={"PageSize": 2}
    )
    found = [each["UploadId"] for page in pages for each in page["Uploads"]]
    assert sorted(found) == sorted(each["UploadId"] for each in begun)
    assert count_calls(world, "ListObjects") - listed == 1
    late = begin(client, bucket, "many/late")
    assert late["UploadId"] in str(client.list_multipart_uploads(Bucket=bucket)["Uploads"])


def count_calls(world: World, call: str) -> int:
    found = world.store.endpoint.metrics.registry.get_sample_value(
        "metainfo_call_seconds_count", {"call": call}
    )
    return int(found or 0)


def test_uploads_that_are_aborted_page_by_page(client: Any, bucket: str) -> None:
    """Who aborts what a page shows, and goes on behind it, meets every upload."""
    begun = {begin(client, bucket, key)["UploadId"] for key in ("a", "a", "a", "a", "b")}
    marks: dict[str, str] = {}
    while True:
        page = client.list_multipart_uploads(Bucket=bucket, MaxUploads=1, **marks)
        for each in page.get("Uploads", []):
            if each["UploadId"] in begun:
                begun.remove(each["UploadId"])
                client.abort_multipart_upload(
                    Bucket=bucket, Key=each["Key"], UploadId=each["UploadId"]
                )
        if not page["IsTruncated"]:
            break
        marks = {"KeyMarker": page["NextKeyMarker"], "UploadIdMarker": page["NextUploadIdMarker"]}
    assert not begun


def test_an_upload_survives_its_gateway(world: World, bucket: str) -> None:
    """What Create was told is in the store: another gateway completes the upload."""
    client = world.client()
    upload = begin(client, bucket, ContentType="text/x", Metadata={"m": "1"}, Tagging="t=2")
    part = send(client, upload, 1, b"data")
    with serve_gateway(Gateway(world.store)) as url:
        other = World(world.store, world.gateway, world.key, url).client()
        complete(other, upload, [part])
        head = other.head_object(Bucket=bucket, Key="k")
    assert (head["ContentType"], head["Metadata"], head["TagCount"]) == ("text/x", {"m": "1"}, 1)


def test_boto3_cuts_large_files_by_itself(client: Any, bucket: str, tmp_path: Any) -> None:
    """upload_file and download_file, with parts in several threads."""
    config = TransferConfig(multipart_threshold=PART, multipart_chunksize=PART, max_concurrency=4)
    (tmp_path / "in").write_bytes(BYTES)
    client.upload_file(str(tmp_path / "in"), bucket, "large", Config=config)
    client.download_file(bucket, "large", str(tmp_path / "out"), Config=config)
    assert (tmp_path / "out").read_bytes() == BYTES
