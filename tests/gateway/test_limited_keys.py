"""Keys with limits, verb by verb: what lies outside is neither read, nor written, nor told of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from calque.gateway.keys import NewKey
from calque.gateway.request import Headers, Request
from calque.gateway.route import VERBS
from calque.gateway.verbs.uploads.upload import encode_id
from calque.store.uplink.encryption.access import Prefix
from calque.store.uplink.objects import ObjectInfo
from tests.gateway.world import HOST, Answer, World, gateway_world, sign_request

SECRET = b"nobody else's business"
COMPLETE = (
    b"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>x</ETag></Part>"
    b"</CompleteMultipartUpload>"
)
TAGS = b"<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>"
CORS = (
    b"<CORSConfiguration><CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET"
    b"</AllowedMethod></CORSRule></CORSConfiguration>"
)
LIFECYCLE = (
    b"<LifecycleConfiguration><Rule><Status>Enabled</Status><Expiration><Days>1</Days>"
    b"</Expiration></Rule></LifecycleConfiguration>"
)


@dataclass
class Asked:
    """A request of a verb."""

    method: str
    path: str
    query: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A store with something inside and something outside of what keys are given."""
    with gateway_world(tmp_path_factory.mktemp("limits") / "data", serve=False) as made:
        made.project.create_bucket("box")
        made.project.create_bucket("other")
        made.project.upload("box", "in/a", b"inside")
        made.project.upload("box", "in/big", b"i" * 6_000_000)
        yield made


def fill(world: World) -> str:
    """What lies outside, and an upload under way to it; the id of the upload."""
    for bucket, key in (("box", "out/a"), ("box", "out/hidden"), ("box", "inn"), ("other", "in/a")):
        world.project.upload(bucket, key, SECRET)
    upload = world.project.begin_multipart("box", "out/a")
    upload.upload_part(1, b"a part", etag="x")
    return encode_id(upload.id)


def state(world: World) -> list[tuple[str, str, str, dict[str, str]]]:
    """All that is outside: names, contents, metadata."""
    return [
        (bucket, each.key, each.etag, dict(each.metadata))
        for bucket in ("box", "other")
        for each in world.project.list_objects(bucket, with_metadata=True)
        if isinstance(each, ObjectInfo) and (bucket == "other" or not each.key.startswith("in/"))
    ]


def delete_of(*keys: str) -> bytes:
    """The document of DeleteObjects."""
    return (
        f"<Delete>{''.join(f'<Object><Key>{key}</Key></Object>' for key in keys)}</Delete>".encode()
    )


def outside(upload: str) -> dict[str, list[Asked]]:
    """Every verb, on something that a key of ``box/in/`` does not reach."""
    out, begun = "/box/out/a", f"uploadId={upload}"
    source = ("x-amz-copy-source", "box/out/a")
    inner = ("x-amz-copy-source", "box/in/a")
    deletes = delete_of("out/a", "inn")
    transfer = (
        b"<PrefixTransfer><Prefix>%s</Prefix><TargetPrefix>%s</TargetPrefix>"
        b"<Overwrite>true</Overwrite></PrefixTransfer>"
    )
    transfers = [
        transfer % (b"out/", b"in/got/"),
        transfer % (b"in/", b"out/"),
        transfer % (b"", b"in/got/"),
    ]
    lists = ["", "prefix=out/", "prefix=in", "prefix=&delimiter=/", "prefix=i", "start-after=in/"]
    whole = ["", "prefix=out/", "prefix=in", "prefix=&delimiter=/"]
    return {
        "ListBuckets": [],  # shows what the key reaches: tried below
        "CreateBucket": [Asked("PUT", "/other"), Asked("PUT", "/new-one")],
        "HeadBucket": [Asked("HEAD", "/other")],
        "DeleteBucket": [Asked("DELETE", "/box"), Asked("DELETE", "/other")],
        "GetBucketLocation": [Asked("GET", "/other", "location")],
        "GetBucketVersioning": [Asked("GET", "/other", "versioning")],
        "ListObjects": [Asked("GET", "/box", query) for query in lists],
        "ListObjectsV2": [Asked("GET", "/box", f"list-type=2&{query}") for query in lists],
        "ListObjectVersions": [Asked("GET", "/box", f"versions&{query}") for query in whole],
        "ListMultipartUploads": [Asked("GET", "/box", f"uploads&{query}") for query in whole],
        "CreateMultipartUpload": [Asked("POST", out, "uploads")],
        "UploadPart": [
            Asked("PUT", out, f"partNumber=1&{begun}", body=b"forged"),
            Asked("PUT", "/box/in/a", f"partNumber=1&{begun}", body=b"forged"),
        ],
        "UploadPartCopy": [
            Asked("PUT", out, f"partNumber=1&{begun}", (inner,)),
            Asked("PUT", "/box/in/a", "partNumber=1&uploadId=INNER", (source,)),
            Asked(
                "PUT", "/box/in/a", "partNumber=1&uploadId=INNER",
                (source, ("x-amz-copy-source-range", "bytes=0-3")),
            ),
        ],
        "ListParts": [Asked("GET", out, begun), Asked("GET", "/box/in/a", begun)],
        "CompleteMultipartUpload": [
            Asked("POST", out, begun, body=COMPLETE),
            Asked("POST", "/box/in/a", begun, body=COMPLETE),
        ],
        "AbortMultipartUpload": [Asked("DELETE", out, begun), Asked("DELETE", "/box/in/a", begun)],
        "DeleteObjects": [Asked("POST", "/box", "delete", (), deletes)],
        "GetBucketCors": [Asked("GET", "/other", "cors")],
        "PutBucketCors": [Asked("PUT", "/box", "cors", (), CORS)],
        "DeleteBucketCors": [Asked("DELETE", "/box", "cors")],
        "GetBucketLifecycle": [Asked("GET", "/other", "lifecycle")],
        "PutBucketLifecycle": [Asked("PUT", "/box", "lifecycle", (), LIFECYCLE)],
        "DeleteBucketLifecycle": [Asked("DELETE", "/box", "lifecycle")],
        "CopyPrefix": [Asked("POST", "/box", "calque-copy-prefix", (), t) for t in transfers],
        "MovePrefix": [Asked("POST", "/box", "calque-move-prefix", (), t) for t in transfers],
        "GetObjectTagging": [Asked("GET", out, "tagging")],
        "PutObjectTagging": [Asked("PUT", out, "tagging", (), TAGS)],
        "DeleteObjectTagging": [Asked("DELETE", out, "tagging")],
        "GetObjectAttributes": [
            Asked("GET", out, "attributes", (("x-amz-object-attributes", "ETag,ObjectSize"),))
        ],
        "CopyObject": [
            Asked("PUT", "/box/in/stolen", headers=(source,)),
            Asked("PUT", "/box/in/stolen", headers=(("x-amz-copy-source", "/other/in/a"),)),
            Asked("PUT", out, headers=(inner,)),
            Asked(
                "PUT", "/box/in/stolen",
                headers=(source, ("x-amz-metadata-directive", "REPLACE")),
            ),
        ],
        "PutObject": [
            Asked("PUT", out, body=b"forged"),
            Asked("PUT", "/box/inn", body=b"forged"),
            Asked("PUT", "/box/out/new", body=b"f" * 100_000),
            Asked("PUT", "/other/in/a", body=b"forged"),
            Asked("PUT", out, headers=(("if-none-match", "*"),), body=b"forged"),
        ],
        "GetObject": [
            Asked("GET", out),
            Asked("GET", "/box/inn"),
            Asked("GET", "/other/in/a"),
            Asked("GET", out, headers=(("range", "bytes=0-3"),)),
            Asked("GET", out, "partNumber=1"),
        ],
        "HeadObject": [Asked("HEAD", out), Asked("HEAD", "/other/in/a")],
        "DeleteObject": [
            Asked("DELETE", out),
            Asked("DELETE", "/box/out/none"),
            Asked("DELETE", out, headers=(("if-match", "*"),)),
        ],
    }  # fmt: skip


def send(world: World, asked: Asked, key: NewKey, inner: str = "") -> Answer:
    query = asked.query.replace("INNER", inner)
    return world.ask(asked.method, asked.path, query, dict(asked.headers), asked.body, key=key)


def test_every_verb_is_tried() -> None:
    """A verb that is added without a look at limited keys fails here."""
    assert outside("x").keys() == {verb.name for verb in VERBS}


def test_nothing_outside_a_prefix_is_reached(quiet: World) -> None:
    """Each verb on what is outside: refused, no byte or name of it told, nothing changed."""
    upload = fill(quiet)
    key = quiet.make_key(prefixes=(Prefix("box", "in/"),))
    inner = encode_id(quiet.project.begin_multipart("box", "in/a").id)
    before = state(quiet)
    for verb, requests in outside(upload).items():
        for asked in requests:
            answer = send(quiet, asked, key, inner)
            shown = (verb, asked, answer.status, answer.body)
            if verb == "DeleteObjects":
                assert answer.body.count(b"AccessDenied") == 2, shown
                assert b"<Deleted>" not in answer.body
            else:
                assert answer.status in (403, 404), shown
            assert SECRET not in answer.body, shown
            assert b"hidden" not in answer.body, shown
            assert state(quiet) == before, shown
            assert quiet.ask("GET", "/box/in/stolen").status == 404, shown
    listed = quiet.ask("GET", "/", key=key).body
    assert b"<Name>box</Name>" in listed
    assert b"other" not in listed
    parts = quiet.ask("GET", "/box/out/a", f"uploadId={upload}")
    assert parts.body.count(b"<Part>") == 1
    assert quiet.ask("GET", "/box/in/a", f"uploadId={inner}").body.count(b"<Part>") == 0


class Untouched:
    """A body that nobody may ask for."""

    def read(self, most: int, /) -> bytes:
        raise AssertionError("the body was read")


@pytest.mark.parametrize("query", ["", "partNumber=1&uploadId=INNER"])
@pytest.mark.parametrize("size", [5, 5_000_000])
def test_bodies_of_who_may_not_write_are_not_asked_for(quiet: World, query: str, size: int) -> None:
    """Refused by the head alone: PutObject and UploadPart, outside the prefix and without write."""
    inner = encode_id(quiet.project.begin_multipart("box", "in/a").id)
    query = query.replace("INNER", inner)
    headers = {"host": HOST, "content-length": str(size)}
    headers["x-amz-content-sha256"] = "UNSIGNED-PAYLOAD"
    for limits in ({"write": False}, {"prefixes": (Prefix("box", "other/"),)}):
        key = quiet.make_key(**limits)
        signed = headers | sign_request(key, "PUT", "/box/in/a", query, headers, b"")
        request = Request("PUT", "/box/in/a", query, Headers(signed.items()), Untouched())
        assert Answer(quiet.gateway.handle(request)).code == "AccessDenied"


READING = {
    "GetObject": Asked("GET", "/box/in/a"),
    "GetObject, a range": Asked("GET", "/box/in/a", headers=(("range", "bytes=0-1"),)),
    "HeadObject": Asked("HEAD", "/box/in/a"),
    "GetObjectAttributes": Asked(
        "GET", "/box/in/a", "attributes", (("x-amz-object-attributes", "ETag"),)
    ),
    "GetObjectTagging": Asked("GET", "/box/in/a", "tagging"),
}
LISTING = {
    "ListObjects": Asked("GET", "/box", "prefix=in/"),
    "ListObjectsV2": Asked("GET", "/box", "list-type=2&prefix=in/&delimiter=/"),
    "ListObjectVersions": Asked("GET", "/box", "versions&prefix=in/"),
    "ListMultipartUploads": Asked("GET", "/box", "uploads&prefix=in/"),
}
DELETING = {
    "DeleteObject": Asked("DELETE", "/box/in/a"),
    "MovePrefix": Asked(
        "POST", "/box", "calque-move-prefix", (),
        b"<PrefixTransfer><Prefix>in/</Prefix><TargetPrefix>in2/</TargetPrefix></PrefixTransfer>",
    ),
    "PutObject": Asked("PUT", "/box/in/a", body=b"other"),
    "PutObject, larger": Asked("PUT", "/box/in/a", body=b"o" * 100_000),
    "CopyObject": Asked("PUT", "/box/in/a", headers=(("x-amz-copy-source", "box/in/big"),)),
    "DeleteBucket": Asked("DELETE", "/box"),
}  # fmt: skip
WRITING = {
    "PutObject": Asked("PUT", "/box/in/new", body=b"x"),
    "PutObject, larger": Asked("PUT", "/box/in/new", body=b"x" * 100_000),
    "CopyObject": Asked("PUT", "/box/in/new", headers=(("x-amz-copy-source", "box/in/a"),)),
    "CreateMultipartUpload": Asked("POST", "/box/in/new", "uploads"),
    "UploadPart": Asked("PUT", "/box/in/a", "partNumber=1&uploadId=INNER", body=b"x"),
    "UploadPartCopy": Asked(
        "PUT", "/box/in/a", "partNumber=1&uploadId=INNER", (("x-amz-copy-source", "box/in/big"),)
    ),
    "CompleteMultipartUpload": Asked("POST", "/box/in/a", "uploadId=INNER", body=COMPLETE),
    "PutObjectTagging": Asked("PUT", "/box/in/a", "tagging", body=TAGS),
    "CopyPrefix": Asked(
        "POST", "/box", "calque-copy-prefix", (),
        b"<PrefixTransfer><Prefix>in/</Prefix><TargetPrefix>in2/</TargetPrefix></PrefixTransfer>",
    ),
    "PutBucketCors": Asked("PUT", "/box", "cors", body=CORS),
    "DeleteBucketCors": Asked("DELETE", "/box", "cors"),
    "PutBucketLifecycle": Asked("PUT", "/box", "lifecycle", body=LIFECYCLE),
    "DeleteBucketLifecycle": Asked("DELETE", "/box", "lifecycle"),
    "CreateBucket": Asked("PUT", "/another"),
}  # fmt: skip


ABORT = Asked("DELETE", "/box/in/a", "uploadId=INNER")
BYTES = ("GetObject", "GetObject, a range")


@pytest.mark.parametrize(
    ("without", "refused"),
    [
        # Who may list sees what listings tell, and that is what stat tells.
        ("read", {name: READING[name] for name in BYTES} | {"copy": WRITING["CopyObject"]}),
        ("read list", READING | LISTING),
        ("list", LISTING),
        ("write", WRITING),
        ("delete", DELETING),
        ("write delete", WRITING | DELETING | {"AbortMultipartUpload": ABORT}),
    ],
)
def test_an_operation_that_was_not_given(
    quiet: World, without: str, refused: dict[str, Asked]
) -> None:
    """A key without an operation is refused every verb that means it, and changes nothing."""
    key = quiet.make_key(**dict.fromkeys(without.split(), False))
    upload = quiet.project.begin_multipart("box", "in/a")
    upload.upload_part(1, b"a part", etag="x")
    inner = encode_id(upload.id)
    for verb, asked in refused.items():
        answer = send(quiet, asked, key, inner)
        assert answer.status == 403, (verb, answer.status, answer.body)
        assert b"inside" not in answer.body
    assert quiet.ask("GET", "/box/in/a").body == b"inside"
    assert quiet.ask("GET", "/box/in/new").status == 404
    assert quiet.ask("HEAD", "/another").status == 404
    assert quiet.ask("GET", "/box", "cors").code == "NoSuchCORSConfiguration"
    assert [part.size for part in upload.parts()] == [6]
