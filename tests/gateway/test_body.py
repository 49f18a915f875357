"""Bodies: every form in which bytes arrive, every promise about them, and what breaks it."""

from __future__ import annotations

import base64
import hashlib
import io
import zlib
from typing import Any

import pytest
from awscrt import checksums as crt

from calque.gateway.signature.chunks import ChunkedBody
from tests.gateway.world import World

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
