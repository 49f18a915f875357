"""Bodies: every form in which bytes arrive, every promise about them, and what breaks it."""

from __future__ import annotations

import base64
import hashlib
import hmac
import io
import zlib
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from awscrt import checksums as crt

from calque.gateway.body.body import Body
from calque.gateway.errors import S3Error
from calque.gateway.request import Headers, Request
from calque.gateway.signature.canonical import SigningKey
from calque.gateway.signature.chunks import ChunkedBody
from calque.values import MIB
from tests.gateway.world import HOST, REGION, Answer, World, sign_request

DATA = b"The quick brown fox" * 30
UNSIGNED_TRAILER = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"


def encode(value: int | bytes, width: int = 0) -> str:
    data = value if isinstance(value, bytes) else value.to_bytes(width, "big")
    return base64.b64encode(data).decode()


RIGHT = {
    "crc32": encode(zlib.crc32(DATA), 4),
    "crc32c": encode(crt.crc32c(DATA), 4),
    "crc64nvme": encode(crt.crc64nvme(DATA), 8),
    "sha1": encode(hashlib.sha1(DATA).digest()),
    "sha256": encode(hashlib.sha256(DATA).digest()),
}


def wrong(algorithm: str) -> str:
    return encode(bytes(len(base64.b64decode(RIGHT[algorithm]))))


def chunked(data: bytes, trailer: dict[str, str], size: int = 100) -> bytes:
    """An aws-chunked body without signatures."""
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n"
    return body + b"".join(f"{n}:{v}\r\n".encode() for n, v in trailer.items()) + b"\r\n"


def is_stored(world: World, bucket: str) -> bool:
    pending = list(world.project.list_pending(bucket))
    assert pending == [], "nothing is left under way"
    return world.ask("GET", f"/{bucket}/k").status == 200


@pytest.mark.parametrize("algorithm", RIGHT)
def test_checksums_as_headers(world: World, bucket: str, algorithm: str) -> None:
    """A wrong one is BadDigest, a malformed one InvalidDigest, a right one is given back."""
    name = f"x-amz-checksum-{algorithm}"
    path = f"/{bucket}/k"
    assert world.ask("PUT", path, headers={name: wrong(algorithm)}, body=DATA).code == "BadDigest"
    assert world.ask("PUT", path, headers={name: "x"}, body=DATA).code == "InvalidDigest"
    assert not is_stored(world, bucket)
    assert world.ask("PUT", path, headers={name: RIGHT[algorithm]}, body=DATA).status == 200
    head = world.ask("HEAD", path, headers={"x-amz-checksum-mode": "ENABLED"})
    assert head.headers[name] == RIGHT[algorithm]
    assert name not in world.ask("HEAD", path).headers
    ranged = {"x-amz-checksum-mode": "ENABLED", "range": "bytes=0-1"}
    assert name not in world.ask("GET", path, headers=ranged).headers


@pytest.mark.parametrize("algorithm", RIGHT)
def test_checksums_as_trailers(world: World, bucket: str, algorithm: str) -> None:
    """The same after the body; the trailer is no part of the content."""
    name = f"x-amz-checksum-{algorithm}"
    headers = {
        "x-amz-content-sha256": UNSIGNED_TRAILER,
        "x-amz-decoded-content-length": str(len(DATA)),
        "x-amz-trailer": name,
        "content-encoding": "aws-chunked",
    }
    for value, code in ((wrong(algorithm), "BadDigest"), ("x", "InvalidDigest")):
        body = chunked(DATA, {name: value})
        assert world.ask("PUT", f"/{bucket}/k", headers=headers, body=body).code == code
    missing = world.ask("PUT", f"/{bucket}/k", headers=headers, body=chunked(DATA, {}))
    assert missing.code == "MalformedTrailerError"
    assert not is_stored(world, bucket)
    body = chunked(DATA, {name: RIGHT[algorithm]})
    assert world.ask("PUT", f"/{bucket}/k", headers=headers, body=body).status == 200
    got = world.ask("GET", f"/{bucket}/k")
    assert got.body == DATA
    assert "content-encoding" not in got.headers


def test_content_md5(world: World, bucket: str) -> None:
    """Right, wrong and malformed."""
    right = encode(hashlib.md5(DATA).digest())
    for value, code in ((encode(bytes(16)), "BadDigest"), ("x", "InvalidDigest"), (right, "")):
        found = world.ask("PUT", f"/{bucket}/k", headers={"content-md5": value}, body=DATA)
        assert found.code == code
        assert is_stored(world, bucket) == (code == "")


@pytest.mark.parametrize(
    ("headers", "body", "code"),
    [
        ({"content-length": "1000"}, DATA, "IncompleteBody"),
        ({"content-length": "x"}, DATA, "InvalidArgument"),
        ({"content-length": "99999999999999999"}, DATA, "EntityTooLarge"),
        ({"x-amz-content-sha256": "0" * 64}, DATA, "XAmzContentSHA256Mismatch"),
        ({"x-amz-content-sha256": "nonsense"}, DATA, "InvalidArgument"),
        ({"x-amz-content-sha256": UNSIGNED_TRAILER}, DATA, "MissingContentLength"),
        (
            {"x-amz-content-sha256": UNSIGNED_TRAILER, "x-amz-decoded-content-length": "570"},
            b"x" * 9000,
            "InvalidRequest",
        ),
        (
            {"x-amz-content-sha256": UNSIGNED_TRAILER, "x-amz-decoded-content-length": "571"},
            chunked(DATA, {}),
            "IncompleteBody",
        ),
        (
            {"x-amz-content-sha256": UNSIGNED_TRAILER, "x-amz-decoded-content-length": "569"},
            chunked(DATA, {}),
            "IncompleteBody",
        ),
        (
            {"x-amz-content-sha256": UNSIGNED_TRAILER, "x-amz-decoded-content-length": "570"},
            chunked(DATA, {})[:-3],
            "IncompleteBody",
        ),
        (
            {"x-amz-content-sha256": UNSIGNED_TRAILER, "x-amz-decoded-content-length": "570"},
            chunked(DATA, {}) + b"more",
            "InvalidRequest",
        ),
        ({"x-amz-checksum-crc32": "x", "x-amz-checksum-sha1": "x"}, DATA, "InvalidRequest"),
        ({"x-amz-trailer": "x-amz-other"}, DATA, "InvalidRequest"),
        ({"x-amz-trailer": "x-amz-checksum-md4"}, DATA, "InvalidRequest"),
    ],
)
def test_bodies_that_break_their_word(
    world: World, bucket: str, headers: dict[str, str], body: bytes, code: str
) -> None:
    """S3's own code, nothing stored, nothing left under way."""
    assert len(DATA) == 570
    assert world.ask("PUT", f"/{bucket}/k", headers=headers, body=body).code == code
    assert not is_stored(world, bucket)


def test_a_wrong_end_of_a_large_body(world: World, client: Any, bucket: str) -> None:
    """What is wrong in the last chunk leaves what was there before, also of a body in pieces."""
    client.put_object(Bucket=bucket, Key="k", Body=b"before")
    data = bytes(1_000_000)
    headers = {
        "x-amz-content-sha256": UNSIGNED_TRAILER,
        "x-amz-decoded-content-length": str(len(data)),
        "x-amz-trailer": "x-amz-checksum-crc32",
    }
    body = chunked(data, {"x-amz-checksum-crc32": "AAAAAA=="}, 65536)
    assert world.ask("PUT", f"/{bucket}/k", headers=headers, body=body).code == "BadDigest"
    assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == b"before"
    assert list(world.project.list_pending(bucket)) == []
    upload = client.create_multipart_upload(Bucket=bucket, Key="k")["UploadId"]
    client.upload_part(Bucket=bucket, Key="k", UploadId=upload, PartNumber=1, Body=b"part")
    query = f"partNumber=1&uploadId={upload}"
    assert world.ask("PUT", f"/{bucket}/k", query, headers, body).code == "BadDigest"
    parts = client.list_parts(Bucket=bucket, Key="k", UploadId=upload)["Parts"]
    assert [each["Size"] for each in parts] == [4], "the part that was there stays"


def test_trailers_are_those_that_were_announced(world: World, bucket: str) -> None:
    """A trailer that nobody announced, or that no body can have, is refused: nothing checks it."""
    chunks = {
        "x-amz-content-sha256": "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
        "x-amz-decoded-content-length": "5",
    }
    trailer = b"5\r\nhello\r\n0\r\nx-amz-checksum-crc32:%s\r\n\r\n"
    announced = {"x-amz-trailer": "x-amz-checksum-crc32"}
    cases: list[tuple[dict[str, str], bytes, str]] = [
        (chunks, trailer % b"AAAAAA==", "MalformedTrailerError"),
        (chunks, trailer % b"NhCmhg==", "MalformedTrailerError"),
        (chunks, b"5\r\nhello\r\n0\r\nx-other:1\r\n\r\n", "MalformedTrailerError"),
        (chunks | announced, b"5\r\nhello\r\n0\r\n\r\n", "MalformedTrailerError"),
        (announced, b"hello", "InvalidRequest"),
        (announced | {"x-amz-content-sha256": "UNSIGNED-PAYLOAD"}, b"hello", "InvalidRequest"),
    ]
    for headers, body, code in cases:
        assert world.ask("PUT", f"/{bucket}/k", "", headers, body).code == code, (headers, body)
    assert world.ask("GET", f"/{bucket}/k").status == 404
    assert world.ask("PUT", f"/{bucket}/k", "", chunks, b"5\r\nhello\r\n0\r\n\r\n").status == 200


def test_a_body_in_chunks_of_one_byte() -> None:
    """Blocks are passed on in sizes that are worth it, however small the chunks are."""
    data = bytes(range(256)) * 1024
    body = io.BytesIO(b"".join(b"1\r\n%c\r\n" % byte for byte in data) + b"0\r\n\r\n")
    blocks = [*ChunkedBody(body, None, has_trailer=False)]
    assert b"".join(blocks) == data
    assert len(blocks) <= 8


SIGNED_CHUNKS = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"


def put_signed_chunks(
    world: World, path: str, query: str, data: bytes, size: int, *, wrong: int | None = None
) -> Answer:
    """PUT a body in signed chunks; that of number ``wrong``, counted from the end, has a signature
    of other bytes."""
    cuts = [*range(0, len(data), size), len(data)]
    chunks = [*(data[start:end] for start, end in pairwise(cuts)), b""]
    headers = {
        "host": HOST,
        "x-amz-content-sha256": SIGNED_CHUNKS,
        "x-amz-decoded-content-length": str(len(data)),
    }
    headers |= sign_request(world.key, "PUT", path, query, headers, b"")
    signature = headers["authorization"].rpartition("Signature=")[2]
    moment = headers["x-amz-date"]
    key = b"AWS4" + world.key.secret_access_key.encode()
    for word in (moment[:8], REGION, "s3", "aws4_request"):
        key = hmac.digest(key, word.encode(), "sha256")
    scope, empty = f"{moment[:8]}/{REGION}/s3/aws4_request", hashlib.sha256().hexdigest()
    body = b""
    for left, chunk in zip(reversed(range(len(chunks))), chunks, strict=True):
        meant = hashlib.sha256(b"other" if left == wrong else chunk).hexdigest()
        text = ["AWS4-HMAC-SHA256-PAYLOAD", moment, scope, signature, empty, meant]
        signature = hmac.digest(key, "\n".join(text).encode(), "sha256").hex()
        body += b"%x;chunk-signature=%s\r\n%s\r\n" % (len(chunk), signature.encode(), chunk)
    return world.ask("PUT", path, query, headers, body, sign=False)


@pytest.mark.parametrize("length", [570, 100_000, 1_200_000])
def test_a_wrong_signature_in_the_last_chunks(
    world: World, client: Any, bucket: str, length: int
) -> None:
    """Of the empty one, and of the last that has bytes: what was there before stays, of an object
    within the database, of one segment, of several steps, and of a part."""
    path, data, size = f"/{bucket}/k", bytes(length), length // 3
    client.put_object(Bucket=bucket, Key="k", Body=b"before")
    upload = client.create_multipart_upload(Bucket=bucket, Key="part")["UploadId"]
    part = (f"/{bucket}/part", f"partNumber=1&uploadId={upload}")
    for wrong in (0, 1):
        for where in ((path, ""), part):
            refused = put_signed_chunks(world, *where, data, size, wrong=wrong)
            assert refused.code == "SignatureDoesNotMatch"
    assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == b"before"
    assert "Parts" not in client.list_parts(Bucket=bucket, Key="part", UploadId=upload)
    client.abort_multipart_upload(Bucket=bucket, Key="part", UploadId=upload)
    assert list(world.project.list_pending(bucket)) == []
    assert put_signed_chunks(world, path, "", data, size).status == 200
    assert client.get_object(Bucket=bucket, Key="k")["Body"].read() == data


class _Unsigned(NamedTuple):
    """What is known of chunks that nobody has signed."""

    payload: str = UNSIGNED_TRAILER
    signing: SigningKey | None = None


def test_a_body_that_never_ends_is_not_read_for_ever() -> None:
    """One that is longer than it said is refused as soon as it is."""
    headers = {
        "x-amz-decoded-content-length": "1000",
        "x-amz-content-sha256": UNSIGNED_TRAILER,
    }
    chunks = io.BytesIO(1000 * (b"4000\r\n" + bytes(0x4000) + b"\r\n"))
    request = Request("PUT", "/b/k", "", Headers(headers.items()), chunks)
    with pytest.raises(S3Error) as caught:
        b"".join(Body(request, _Unsigned()))
    assert caught.value.code == "IncompleteBody"
    assert chunks.tell() < MIB
