"""Requests that nobody planned for: never a 500, never a traceback, nothing left behind."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from calque.gateway.request import Headers, Request
from calque.gateway.verbs.uploads.upload import encode_id
from tests.gateway.world import HOST, Answer, World, gateway_world, sign_request

METHODS = ["GET", "PUT", "POST", "DELETE", "HEAD", "OPTIONS", "PATCH", "get", "TRACE"]
PATHS = ["/", "/box", "/box/", "/box/k", "/box/a/b", "/none", "/none/k", "//", "/box//", "/BOX/k"]
PIECES = ["%", "%00", "%C3", "%FF", "..", "/", "a" * 1100, "%2F", "+", " ", "ü", "?", "&", "\x7f"]
NAMES_TEXT = """
acl attributes cors delete lifecycle location partNumber policy prefix delimiter max-keys marker
start-after continuation-token encoding-type fetch-owner list-type tagging torrent uploadId
uploads upload-id-marker key-marker max-uploads max-parts part-number-marker versionId versioning
versions website response-content-type response-expires x-id X-Amz-Algorithm X-Amz-Credential
X-Amz-Date X-Amz-Expires X-Amz-Signature X-Amz-SignedHeaders AWSAccessKeyId Signature Expires
restore select quota calque-move-prefix calque-copy-prefix max-buckets bucket-region
"""
NAMES = NAMES_TEXT.split()
VALUES = [
    "", "0", "1", "2", "-1", "10001", "99999999999999999999", "x", "url", "/", "k", "%00", "%ff",
    "a=b", "null", "true", "*", '"x"', "AAAA", "bytes=0-1", "bytes=5-", "bytes=-3", "\u00fc", "=",
    "Mon, 16 Nov 2026 02:33:16 GMT", "20261116T000000Z", "Fri, 31 Dec 9999 23:59:59 -1000",
    "Mon, 16 Nov 2026 02:33:16 +9999999999999999999999", "5", "a" * 3000, "%", "'", "<&>", "\t",
]  # fmt: skip
HEADERS_TEXT = """
range if-match if-none-match if-modified-since if-unmodified-since if-range content-md5
content-type content-length content-encoding expect cache-control expires origin transfer-encoding
date access-control-request-method access-control-request-headers x-amz-acl x-amz-copy-source
x-amz-copy-source-range x-amz-copy-source-if-match x-amz-copy-source-if-modified-since
x-amz-metadata-directive x-amz-tagging x-amz-tagging-directive x-amz-checksum-crc32
x-amz-checksum-sha256 x-amz-checksum-algorithm x-amz-checksum-type x-amz-checksum-mode
x-amz-trailer x-amz-decoded-content-length x-amz-content-sha256 x-amz-date x-amz-meta-a
x-amz-meta-calque:x x-amz-object-attributes x-amz-max-parts x-amz-part-number-marker
x-amz-mp-object-size x-amz-storage-class x-amz-sdk-checksum-algorithm x-amz-server-side-encryption
x-amz-security-token x-amz-expected-bucket-owner authorization
"""
HEADERS = HEADERS_TEXT.split()
SPECIAL = {
    "x-amz-copy-source": [
        "box/k",
        "/box/k",
        "box",
        "none/k",
        "box/none",
        "%ff/k",
        "box/k?versionId=1",
    ],
    "x-amz-content-sha256": [
        "UNSIGNED-PAYLOAD",
        "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
        "STREAMING-AWS4-HMAC-SHA256-PAYLOAD",
        "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER",
        "0" * 64,
    ],
    "x-amz-trailer": ["x-amz-checksum-crc32", "x-amz-checksum-sha256", "other"],
    "content-type": ["multipart/form-data; boundary=x", "multipart/form-data", "text/xml"],
    "x-amz-object-attributes": ["ETag", "ETag,ObjectParts,Checksum", "x"],
    "x-amz-checksum-algorithm": ["CRC32", "sha256", "md4"],
    "x-amz-tagging": ["a=b", "a", "a=b&a=c", "%ff=%ff"],
}
BODIES = [
    b"",
    b"x",
    b"<",
    b"<a/>",
    b"<Delete/>",
    b"<Delete><Object><Key>k</Key></Object></Delete>",
    b"<Delete><Object><Key></Key></Object><Object/></Delete>",
    b"<Delete><Object><Key>" + b"a" * 2000 + b"</Key><ETag>x</ETag></Object></Delete>",
    b"<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>",
    b"<Tagging/>",
    b"<CompleteMultipartUpload/>",
    (
        b"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>x</ETag></Part>"
        b"</CompleteMultipartUpload>"
    ),
    b"<CompleteMultipartUpload><Part><PartNumber>x</PartNumber></Part></CompleteMultipartUpload>",
    (
        b"<CORSConfiguration><CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>GET"
        b"</AllowedMethod></CORSRule></CORSConfiguration>"
    ),
    b"<CreateBucketConfiguration/>",
    b'<!DOCTYPE a [<!ENTITY b "c">]><Delete>&b;</Delete>',
    b"\xff\xfe<\x00D\x00",
    b"5\r\nhello\r\n0\r\n\r\n",
    b"5;chunk-signature=x\r\nhello\r\n0;chunk-signature=y\r\n\r\n",
    b"ffffffffffffffff\r\n",
    b"0\r\nx-amz-checksum-crc32:AAAAAA==\r\n\r\n",
    (
        b'--x\r\nContent-Disposition: form-data; name="key"\r\n\r\nk\r\n'
        b'--x\r\nContent-Disposition: form-data; name="policy"\r\n\r\ne30=\r\n'
        b'--x\r\nContent-Disposition: form-data; name="file"\r\n\r\nx\r\n--x--\r\n'
    ),
    b"--x\r\n\r\n\r\n--x--",
    (b"<PrefixTransfer><Prefix>a/</Prefix><TargetPrefix>b/</TargetPrefix></PrefixTransfer>"),
    (
        b"<LifecycleConfiguration><Rule><Status>Enabled</Status><Expiration><Days>9</Days>"
        b"</Expiration></Rule></LifecycleConfiguration>"
    ),
]


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A gateway without a server."""
    with gateway_world(tmp_path_factory.mktemp("fuzz") / "data", serve=False) as made:
        yield made


def make_request(world: World, dice: random.Random, upload: str) -> Request:
    """A request out of parts that real ones have, signed or nearly; ``upload`` is under way."""
    method = dice.choice(METHODS[:5] if dice.random() < 0.9 else METHODS)
    path = dice.choice(PATHS)
    if dice.random() < 0.2:
        path += dice.choice(PIECES)
    path = path.encode().decode("latin-1")
    chosen = dice.sample(NAMES, dice.choice([0, 0, 1, 1, 2, 4]))
    if dice.random() < 0.1:
        path, chosen = "/box/k", dice.choice([["uploadId"], ["uploadId", "partNumber"]])
    values = {name: dice.choice(VALUES) for name in chosen}
    if "uploadId" in values and dice.random() < 0.8:
        values |= {"uploadId": upload} | ({"partNumber": "1"} if "partNumber" in values else {})
    query = "&".join(f"{name}={value}" for name, value in values.items())
    query = query.replace(" ", "%20").replace("#", "%23").encode().decode("latin-1")
    body = dice.choice(BODIES)
    headers = {"host": HOST, "content-length": str(len(body))}
    for name in dice.sample(HEADERS, dice.choice([0, 0, 1, 2, 3])):
        value = dice.choice(SPECIAL[name] if name in SPECIAL and dice.random() < 0.8 else VALUES)
        headers[name] = value.encode().decode("latin-1")
    if dice.random() < 0.95 and "authorization" not in headers:
        with suppress(UnicodeError):  # what cannot be signed comes unsigned
            headers |= sign_request(world.key, method, path, query, headers, body)
    if dice.random() < 0.05:
        headers[dice.choice(list(headers))] = dice.choice(VALUES).encode().decode("latin-1")
    return Request(method, path, query, Headers(headers.items()), io.BytesIO(body))


def try_many(world: World, count: int, seed: int) -> dict[int, int]:
    """How often each status came; a 500 shows the request that led to it."""
    dice = random.Random(seed)
    statuses: dict[int, int] = {}
    for number in range(count):
        if number % 50 == 0:
            world.project.create_bucket("box", exist_ok=True)
            world.project.upload("box", "k", b"kept")
            begun = world.project.begin_multipart("box", "k")
            begun.upload_part(1, b"a part", etag="x")
        request = make_request(world, dice, encode_id(begun.id))
        answer = Answer(world.gateway.handle(request))
        shown = (request.method, request.path, request.query, dict(request.headers), answer.body)
        assert answer.status < 500 or answer.status == 501, shown
        assert answer.status >= 200
        statuses[answer.status] = statuses.get(answer.status, 0) + 1
    return statuses


def test_no_request_is_a_500(quiet: World) -> None:
    """Some thousand requests out of odd parts; some of them are even right."""
    statuses = try_many(quiet, 3000, seed=15)
    assert statuses[200] > 100
    assert statuses[400] > 100
    assert statuses[501] > 50


@pytest.mark.soak
@pytest.mark.timeout(3000)
def test_a_hundred_thousand(tmp_path: Path) -> None:
    """The same, for long, from another seed each time."""
    with gateway_world(tmp_path / "data", serve=False) as world:
        seed = random.randrange(2**32)
        print("seed", seed)
        try_many(world, 100_000, seed)
