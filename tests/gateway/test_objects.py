"""Objects: headers, ranges, copies, tags, attributes, many deletes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.gateway.test_gateway import refused
from tests.gateway.world import World

DATA = bytes(range(256)) * 40


def status_of(call: Any, **arguments: Any) -> int:
    """The status of an answer, good or bad."""
    try:
        found = call(**arguments)
    except ClientError as error:
        found = error.response
    return int(found["ResponseMetadata"]["HTTPStatusCode"])


def test_headers_come_back(client: Any, bucket: str) -> None:
    """Content headers, metadata in any script and the time are kept; aws-chunked is not."""
    told = {
        "ContentType": "text/plain; charset=utf-8",
        "ContentEncoding": "aws-chunked,gzip",
        "ContentLanguage": "de",
        "ContentDisposition": 'attachment; filename="x"',
        "CacheControl": "max-age=1",
    }
    client.put_object(Bucket=bucket, Key="k", Body=b"x", Metadata={"Mixed-Case": "v"}, **told)
    head = client.head_object(Bucket=bucket, Key="k")
    assert {name: head[name] for name in told} == {**told, "ContentEncoding": "gzip"}
    assert head["Metadata"] == {"mixed-case": "v"}
    changed = client.get_object(Bucket=bucket, Key="k", ResponseContentType="image/png")
    assert changed["ContentType"] == "image/png"
    refused(
        "MetadataTooLarge", client.put_object, Bucket=bucket, Key="m", Metadata={"a": "x" * 2048}
    )


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("bytes=0-9", slice(0, 10)),
        ("bytes=100-", slice(100, None)),
        ("bytes=-7", slice(-7, None)),
        ("bytes=5-999999", slice(5, None)),
        ("bytes=-999999", slice(0, None)),
        ("bytes=0-0", slice(0, 1)),
    ],
)
def test_a_range(client: Any, bucket: str, asked: str, found: slice) -> None:
    """A range is those bytes, 206, with its place; a checksum of the whole is not sent with it."""
    client.put_object(Bucket=bucket, Key="k", Body=DATA)
    got = client.get_object(Bucket=bucket, Key="k", Range=asked)
    assert got["Body"].read() == DATA[found]
    assert got["ResponseMetadata"]["HTTPStatusCode"] == 206
    first = found.indices(len(DATA))[0]
    assert got["ContentRange"] == f"bytes {first}-{first + got['ContentLength'] - 1}/{len(DATA)}"
    assert "ChecksumCRC32" not in got


def test_ranges_that_are_none(client: Any, world: World, bucket: str) -> None:
    """Past the end is 416 with the size; several ranges and nonsense are the whole object."""
    client.put_object(Bucket=bucket, Key="k", Body=DATA)
    for asked in (f"bytes={len(DATA)}-", "bytes=999999-1000000", "bytes=-0"):
        answer = world.ask("GET", f"/{bucket}/k", headers={"range": asked})
        assert (answer.status, answer.code) == (416, "InvalidRange")
        assert answer.headers["content-range"] == f"bytes */{len(DATA)}"
    for asked in ("bytes=0-1,3-4", "bytes=9-1", "lines=1-2", "bytes=x-y", "bytes=-"):
        answer = world.ask("GET", f"/{bucket}/k", headers={"range": asked})
        assert (answer.status, answer.body) == (200, DATA)
    client.put_object(Bucket=bucket, Key="empty", Body=b"")
    assert world.ask("GET", f"/{bucket}/empty", headers={"range": "bytes=0-"}).status == 416


def test_metadata_of_another_door_that_no_header_can_hold(world: World, bucket: str) -> None:
    """Names with line breaks or beyond ASCII are counted, not sent: a header must stay one."""
    odd = {"ok": "1", "a\r\nset-cookie: x": "2", "\u00fc": "3", "a b": "4", "": "5"}
    odd = {name: value for name, value in odd.items() if name}
    world.project.upload(bucket, "k", b"x", metadata=odd)
    answer = world.ask("HEAD", f"/{bucket}/k")
    assert answer.status == 200
    assert answer.headers["x-amz-meta-ok"] == "1"
    assert answer.headers["x-amz-missing-meta"] == "3"
    assert not any("cookie" in name for name in answer.headers)
    assert world.client().get_object(Bucket=bucket, Key="k")["Body"].read() == b"x"


def test_copies(client: Any, bucket: str) -> None:
    """COPY carries all, REPLACE says anew, tags have a directive of their own; the ETag stays."""
    name = "ü b/+%"
    put = client.put_object(
        Bucket=bucket, Key=name, Body=DATA, Metadata={"a": "1"}, ContentType="text/x", Tagging="t=1"
    )
    copied = client.copy_object(
        Bucket=bucket, Key="copy", CopySource={"Bucket": bucket, "Key": name}
    )
    assert copied["CopyObjectResult"]["ETag"] == put["ETag"]
    assert copied["CopyObjectResult"]["ChecksumCRC32"] == put["ChecksumCRC32"]
    head = client.head_object(Bucket=bucket, Key="copy")
    assert (head["Metadata"], head["ContentType"], head["TagCount"]) == ({"a": "1"}, "text/x", 1)
    client.copy_object(
        Bucket=bucket,
        Key="copy",
        CopySource=f"/{bucket}/copy",
        MetadataDirective="REPLACE",
        Metadata={"b": "2"},
    )
    head = client.head_object(Bucket=bucket, Key="copy")
    assert (head["Metadata"], head["ETag"], head["TagCount"]) == ({"b": "2"}, put["ETag"], 1)
    client.copy_object(
        Bucket=bucket,
        Key="copy",
        CopySource=f"{bucket}/copy",
        TaggingDirective="REPLACE",
        Tagging="x=1&y=2",
    )
    assert client.head_object(Bucket=bucket, Key="copy")["TagCount"] == 2
    refused(
        "InvalidRequest", client.copy_object, Bucket=bucket, Key="copy", CopySource=f"{bucket}/copy"
    )
    refused("NoSuchKey", client.copy_object, Bucket=bucket, Key="c", CopySource=f"{bucket}/none")
    refused("NoSuchBucket", client.copy_object, Bucket=bucket, Key="c", CopySource="none-such/x")
    client.delete_object(Bucket=bucket, Key=name)
    assert client.get_object(Bucket=bucket, Key="copy")["Body"].read() == DATA


def test_more_copies_than_an_original_may_have(client: Any, bucket: str) -> None:
    """The store counts references, S3 does not: what is too many is stored once more."""
    client.put_object(Bucket=bucket, Key="k", Body=DATA, Metadata={"a": "1"})
    for number in range(103):
        client.copy_object(Bucket=bucket, Key=f"copy/{number}", CopySource=f"{bucket}/k")
    last = client.get_object(Bucket=bucket, Key="copy/102")
    assert (last["Body"].read(), last["Metadata"]) == (DATA, {"a": "1"})


def test_a_folder_moves_in_one_transaction(world: World, client: Any, bucket: str) -> None:
    """Our extension: everything below a prefix, all or nothing."""
    for number in range(5):
        client.put_object(Bucket=bucket, Key=f"old/{number}", Body=b"%d" % number)

    def ask(verb: str, **content: str) -> Any:
        body = "".join(f"<{name}>{value}</{name}>" for name, value in content.items())
        document = f"<PrefixTransfer>{body}</PrefixTransfer>".encode()
        return world.ask("POST", f"/{bucket}", f"calque-{verb}-prefix", body=document)

    copied = ask("copy", Prefix="old/", TargetPrefix="copy/")
    assert (copied.status, b"<Objects>5</Objects>" in copied.body) == (200, True)
    again = ask("copy", Prefix="old/", TargetPrefix="copy/")
    assert again.code == "PreconditionFailed"
    assert ask("move", Prefix="old/", TargetPrefix="copy/", Overwrite="true").status == 200
    assert [each["Key"] for each in client.list_objects_v2(Bucket=bucket)["Contents"]] == [
        f"copy/{number}" for number in range(5)
    ]
    assert client.get_object(Bucket=bucket, Key="copy/3")["Body"].read() == b"3"
    assert ask("move", Prefix="none/", TargetPrefix="x/").status == 404
    assert ask("move", Prefix="half", TargetPrefix="x/").code == "MalformedXML"


def test_tags(client: Any, world: World, bucket: str) -> None:
    """Tags are set, read and removed without a change to the object; eleven are too many."""
    etag = client.put_object(Bucket=bucket, Key="k", Body=b"x", Tagging="a=1&b=%20&c")["ETag"]
    args = {"Bucket": bucket, "Key": "k"}
    assert client.get_object_tagging(**args)["TagSet"] == [
        {"Key": "a", "Value": "1"},
        {"Key": "b", "Value": " "},
        {"Key": "c", "Value": ""},
    ]
    most = [{"Key": f"{n:0128d}", "Value": "v" * 256} for n in range(10)]
    client.put_object_tagging(**args, Tagging={"TagSet": most})
    assert client.get_object_tagging(**args)["TagSet"] == most
    for wrong in (
        [*most, {"Key": "k", "Value": ""}],
        [{"Key": "k" * 129, "Value": ""}],
        [{"Key": "k", "Value": "v" * 257}],
        [{"Key": "k", "Value": "1"}, {"Key": "k", "Value": "2"}],
    ):
        assert status_of(client.put_object_tagging, **args, Tagging={"TagSet": wrong}) == 400
    client.delete_object_tagging(**args)
    assert client.get_object_tagging(**args)["TagSet"] == []
    assert client.head_object(**args)["ETag"] == etag, "DELETE ?tagging deletes no object"
    refused("NoSuchKey", client.get_object_tagging, Bucket=bucket, Key="none")


def test_attributes(client: Any, bucket: str) -> None:
    """Only what was asked for is told."""
    put = client.put_object(Bucket=bucket, Key="k", Body=DATA)
    asked = ["ETag", "Checksum", "ObjectSize", "StorageClass", "ObjectParts"]
    found = client.get_object_attributes(Bucket=bucket, Key="k", ObjectAttributes=asked)
    assert found["ETag"] == put["ETag"].strip('"')
    assert found["ObjectSize"] == len(DATA)
    assert found["Checksum"]["ChecksumCRC32"] == put["ChecksumCRC32"]
    only = client.get_object_attributes(Bucket=bucket, Key="k", ObjectAttributes=["ObjectSize"])
    assert "ETag" not in only


def test_many_deletes(client: Any, bucket: str) -> None:
    """Each key has its own result; quiet tells errors alone; 1,001 keys are no document of S3."""
    for name in "abc":
        client.put_object(Bucket=bucket, Key=name, Body=name.encode())
    answer = client.delete_objects(
        Bucket=bucket,
        Delete={"Objects": [{"Key": "a"}, {"Key": "none"}, {"Key": "b", "ETag": '"0"'}]},
    )
    assert [each["Key"] for each in answer["Deleted"]] == ["a", "none"]
    assert [(each["Key"], each["Code"]) for each in answer["Errors"]] == [
        ("b", "PreconditionFailed")
    ]
    quiet = client.delete_objects(
        Bucket=bucket, Delete={"Objects": [{"Key": "b"}, {"Key": "c"}], "Quiet": True}
    )
    assert "Deleted" not in quiet
    assert client.list_objects_v2(Bucket=bucket)["KeyCount"] == 0
    many = {"Objects": [{"Key": str(n)} for n in range(1001)]}
    refused("MalformedXML", client.delete_objects, Bucket=bucket, Delete=many)


@pytest.mark.parametrize(
    ("method", "target", "query", "headers"),
    [
        ("GET", "bucket", "acl", {}),
        ("GET", "bucket", "policy", {}),
        ("PUT", "bucket", "versioning", {}),
        ("GET", "bucket", "website", {}),
        ("GET", "bucket", "never-heard-of", {}),
        ("PUT", "object", "acl", {}),
        ("GET", "object", "versionId=x", {}),
        ("GET", "object", "torrent", {}),
        ("DELETE", "object", "legal-hold", {}),
        ("PUT", "object", "", {"x-amz-acl": "public-read"}),
        ("PUT", "object", "", {"x-amz-server-side-encryption": "aws:kms"}),
        ("PUT", "object", "", {"x-amz-server-side-encryption-customer-algorithm": "AES256"}),
        ("PUT", "object", "", {"x-amz-object-lock-mode": "GOVERNANCE"}),
        ("PUT", "object", "", {"x-amz-website-redirect-location": "/"}),
    ],
)
def test_what_is_not_offered_says_so(
    world: World, bucket: str, method: str, target: str, query: str, headers: dict[str, str]
) -> None:
    """501 by name; an unknown sub-resource is never taken for the plain verb."""
    world.ask("PUT", f"/{bucket}/k", body=b"kept")
    path = f"/{bucket}" + ("/k" if target == "object" else "")
    answer = world.ask(method, path, query, headers)
    assert (answer.status, answer.code) == (501, "NotImplemented")
    if query.startswith("version"):
        assert b"does not offer versions of objects" in answer.body
    assert world.ask("GET", f"/{bucket}/k").body == b"kept"


def test_an_object_is_its_one_version(client: Any, bucket: str) -> None:
    """As in any bucket of S3 that never had versions: its id is null."""
    for name in "abc":
        client.put_object(Bucket=bucket, Key=name, Body=name.encode())
    pages = client.get_paginator("list_object_versions").paginate(
        Bucket=bucket, PaginationConfig={"PageSize": 2}
    )
    found = [(each["Key"], each["VersionId"]) for page in pages for each in page["Versions"]]
    assert found == [("a", "null"), ("b", "null"), ("c", "null")]
    assert client.get_object(Bucket=bucket, Key="a", VersionId="null")["Body"].read() == b"a"
    client.delete_object(Bucket=bucket, Key="a", VersionId="null")
    refused("NoSuchKey", client.get_object, Bucket=bucket, Key="a")
    refused("NotImplemented", client.delete_object, Bucket=bucket, Key="b", VersionId="x")


def test_what_is_offered_as_true(client: Any, bucket: str) -> None:
    """Everything is encrypted with AES-256 and private: to ask for that is no error."""
    client.put_object(
        Bucket=bucket, Key="k", Body=b"x", ACL="private", ServerSideEncryption="AES256"
    )


RULE = {
    "ID": "tidy",
    "Status": "Enabled",
    "Filter": {"Prefix": "tmp/"},
    "Expiration": {"Days": 7},
    "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1},
}


def test_rules_of_expiry(world: World, client: Any, bucket: str) -> None:
    """What is written below the prefix expires by the store's own expiry; the rest does not."""
    args = {"Bucket": bucket}
    refused("NoSuchLifecycleConfiguration", client.get_bucket_lifecycle_configuration, **args)
    rules = {"Rules": [RULE]}
    client.put_bucket_lifecycle_configuration(**args, LifecycleConfiguration=rules)
    assert client.get_bucket_lifecycle_configuration(**args)["Rules"] == [RULE]
    client.put_object(**args, Key="tmp/a", Body=b"x")
    client.put_object(**args, Key="kept", Body=b"x")
    upload = client.create_multipart_upload(**args, Key="tmp/b")["UploadId"]
    of = {**args, "Key": "tmp/b", "UploadId": upload}
    etag = client.upload_part(**of, PartNumber=1, Body=b"x")["ETag"]
    parts = {"Parts": [{"PartNumber": 1, "ETag": etag}]}
    client.complete_multipart_upload(**of, MultipartUpload=parts)
    for key in ("tmp/a", "tmp/b"):
        info = world.project.stat(bucket, key)
        assert info.expires is not None
        assert abs(info.expires - info.created - timedelta(days=7)) < timedelta(minutes=5)
        assert "expiry-date" in client.head_object(**args, Key=key)["Expiration"]
    assert world.project.stat(bucket, "kept").expires is None
    client.delete_bucket_lifecycle(**args)
    client.put_object(**args, Key="tmp/a", Body=b"x")
    assert world.project.stat(bucket, "tmp/a").expires is None


@pytest.mark.parametrize(
    ("rule", "code"),
    [
        ({**RULE, "Transitions": [{"Days": 1, "StorageClass": "GLACIER"}]}, "NotImplemented"),
        ({**RULE, "Filter": {"ObjectSizeGreaterThan": 5}}, "NotImplemented"),
        ({**RULE, "Expiration": {"ExpiredObjectDeleteMarker": True}}, "NotImplemented"),
        ({**RULE, "Expiration": {"Days": 0}}, "InvalidArgument"),
        ({"ID": "x", "Status": "Enabled", "Filter": {}}, "InvalidRequest"),
    ],
)
def test_rules_that_cannot_be_kept(client: Any, bucket: str, rule: Any, code: str) -> None:
    """501 by name, and nothing is changed."""
    rules = {"Rules": [rule]}
    put = client.put_bucket_lifecycle_configuration
    refused(code, put, Bucket=bucket, LifecycleConfiguration=rules)
    get = client.get_bucket_lifecycle_configuration
    refused("NoSuchLifecycleConfiguration", get, Bucket=bucket)
