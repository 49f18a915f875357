"""Reads that are cut, writes in parts, versions, and what guards the bytes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator

import pytest

from calque.errors import (
    ConditionNotMatch,
    IntegrityError,
    InvalidInput,
    NotFound,
    PermissionDenied,
    Unavailable,
)
from calque.operator import Operator
from calque.operator.options import ReadOptions
from calque.values import MIB
from tests.operator.behaviour.case import content
from tests.operator.services.s3.conftest import Open
from tests.operator.services.s3.server import make_bucket
from tests.servers.proxy import Fault, FaultProxy, Reply
from tests.servers.seaweedfs import S3Server

BROKEN = Reply(500, {}, b"<Error><Code>InternalError</Code><Message>oops</Message></Error>")


def test_a_read_that_is_cut_goes_on(op: Operator, through: Operator, proxy: FaultProxy) -> None:
    """From the byte where it stopped, pinned to the same object."""
    data = content(3 * MIB)
    op.write("x", data)
    proxy.add(Fault(method="GET", times=3, cut=700_000))
    assert b"".join(through.read_stream("x")) == data
    asked = [each.headers for each in proxy.seen("GET")]
    assert len(asked) == 4
    assert "if-match" not in asked[0]
    pin = op.stat("x").etag
    assert [each["if-match"] for each in asked[1:]] == [f'"{pin}"'] * 3
    starts = [int(each["range"][6:].split("-")[0]) for each in asked[1:]]
    assert starts == sorted(set(starts))


def test_a_read_that_is_cut_and_replaced(
    op: Operator, through: Operator, proxy: FaultProxy
) -> None:
    """The rest would be another object's: ConditionNotMatch, never a mixture."""
    op.write("x", content(2 * MIB))
    proxy.add(Fault(method="GET", cut=700_000))
    stream = through.read_stream("x")
    next(stream)
    op.write("x", content(2 * MIB))
    with pytest.raises(ConditionNotMatch):
        list(stream)


def test_a_read_that_never_goes_on(op: Operator, through: Operator, proxy: FaultProxy) -> None:
    """Bounded, then told."""
    op.write("x", content(1 * MIB))
    proxy.add(Fault(method="GET", times=None, cut=0))
    with pytest.raises(Unavailable):
        list(through.service.read("x", ReadOptions()))
    assert proxy.count("GET") == 6


def test_a_stream_that_is_left_gives_its_connection_back(open_at: Open) -> None:
    """Readers that stop early do not use up the pool."""
    op = open_at(max_connections=1, read_timeout=60.0)
    op.write("x", content(2 * MIB))
    for _ in range(3):
        stream = op.read_stream("x")
        next(stream)
        stream.close()  # type: ignore[attr-defined]
    assert op.stat("x").size == 2 * MIB


def test_a_write_in_parts_keeps_little_in_memory(op: Operator) -> None:
    """48 MiB pass through a few parts of 8; the bytes are right."""
    piece = content(1 * MIB)

    def chunks() -> Iterator[bytes]:
        for _ in range(48):
            yield piece

    tracemalloc.start()
    made = op.write("big", chunks(), concurrent=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert made.size == 48 * MIB
    assert peak < 40 * MIB
    assert op.read("big", offset=30 * MIB, length=MIB) == piece
    assert made.etag == op.stat("big").etag


def test_what_a_write_in_parts_sends(op: Operator, through: Operator, proxy: FaultProxy) -> None:
    """A checksum on each part and on the whole; the condition on the commit."""
    data = content(20 * MIB)
    through.write("big", [data[:3], data[3:]], if_not_exists=True, tags={"a": "b"})
    parts = [each for each in proxy.seen("PUT") if "10000" not in each.target]
    assert [len(each.body) for each in sorted(parts, key=lambda each: each.target)] == [
        *(8 * MIB, 8 * MIB, 4 * MIB)
    ]
    assert all("x-amz-checksum-crc32" in each.headers for each in parts)
    (commit,) = proxy.seen("POST", "?uploadId=")
    assert commit.headers["if-none-match"] == "*"
    assert commit.headers["x-amz-mp-object-size"] == str(20 * MIB)
    assert "x-amz-checksum-crc32" in commit.headers
    assert op.read("big") == data


def test_a_write_whose_part_fails(op: Operator, through: Operator, proxy: FaultProxy) -> None:
    """The old object stays, no upload is left."""
    op.write("big", b"old")
    proxy.add(Fault(method="PUT", contains="partNumber=2&", times=None, reply=BROKEN))
    with pytest.raises(Unavailable):
        through.write("big", content(20 * MIB))
    assert op.read("big") == b"old"
    assert list(op.leftovers()) == []


@pytest.mark.parametrize("checksum", ["crc32", "md5"])
def test_bytes_that_change_on_their_way(open_at: Open, proxy: FaultProxy, checksum: str) -> None:
    """The server sees it and refuses; a signature over plain HTTP would not be needed for that."""
    through = open_at(proxy.endpoint, checksum=checksum)
    wrong = Reply(400, {}, b"<Error><Code>BadDigest</Code><Message>no</Message></Error>")
    proxy.add(Fault(method="PUT", reply=wrong))
    with pytest.raises(IntegrityError):
        through.write("x", b"123")
    assert through.write("x", b"123").size == 3
    header = "x-amz-checksum-crc32" if checksum == "crc32" else "content-md5"
    assert header in proxy.seen("PUT")[1].headers


def test_a_lost_conditional_write_is_not_repeated(
    op: Operator, through: Operator, proxy: FaultProxy
) -> None:
    """The server may have acted: a repeat could report a refusal that is our own doing."""
    proxy.add(Fault(method="PUT", drop=True, acted=True))
    with pytest.raises(Unavailable):
        through.write("x", b"1", if_not_exists=True)
    assert proxy.count("PUT") == 1
    assert op.read("x") == b"1"


def test_non_ascii_user_metadata(op: Operator) -> None:
    """Comes back as it was written."""
    op.write("x", b"1", user={"name": "Grüße 🙂"})
    assert op.stat("x").user["name"] == "Grüße 🙂"
    op.copy("x", "y")
    assert op.stat("y").user["name"] == "Grüße 🙂"


def test_versions(server: S3Server, open_at: Open) -> None:
    """Read, copied and deleted by name; the newest goes on living."""
    make_bucket(server, "with-versions", versions=True)
    op = open_at(bucket="with-versions", versions=True)
    first = op.write("x", b"first")
    second = op.write("x", b"second")
    assert first.version
    assert first.version != second.version
    assert op.read("x", version=first.version) == b"first"
    assert op.stat("x", version=first.version).size == 5
    made = op.copy("x", "old", source_version=first.version)
    assert op.read("old") == b"first"
    assert made.version
    op.delete("x", version=first.version)
    with pytest.raises(NotFound):
        op.read("x", version=first.version)
    assert op.read("x") == b"second"


def test_the_pinned_version_is_copied(server: S3Server, open_at: Open) -> None:
    """Although a newer one appears midway, on both sides of the threshold."""
    make_bucket(server, "with-pins", versions=True)
    op = open_at(bucket="with-pins", versions=True)
    for size in (100, 16 * MIB):
        data = content(size)
        op.write("x", data)
        copier = op.copier("x", "to", concurrent=1, chunk=5 * MIB)
        op.write("x", b"newer")
        copier.run()
        assert op.read("to") == data


def test_a_missing_version_is_not_a_missing_right(op: Operator) -> None:
    """Versions where the bucket keeps none are refused before a request."""
    with pytest.raises(NotImplementedError):
        op.read("x", version="nonsense")


def test_delete_by_condition(op: Operator) -> None:
    """If-Match on a delete; a missing object is no error without one."""
    made = op.write("x", b"1")
    with pytest.raises(ConditionNotMatch):
        op.delete("x", if_match="0" * 32)
    op.delete("x", if_match=made.etag)
    op.delete("x")
    assert not op.exists("x")


def test_between_two_servers_bytes_stream(
    moto_server: S3Server, op: Operator, open_at: Open
) -> None:
    """They cannot copy between themselves: Unsupported, unless streaming is asked for."""
    other = open_at(
        moto_server.endpoint,
        access_key_id=moto_server.access_key,
        secret_access_key=moto_server.secret_key,
    )
    data = content(9 * MIB)
    op.write("x", data, user={"a": "b"}, content_type="x/y")
    with pytest.raises(NotImplementedError):
        op.copy("x", "y", into=other)
    copier = op.copier("x", "y", into=other, stream=True)
    assert copier.route == "through the client"
    copier.run()
    assert other.read("y") == data
    assert other.stat("y").content_type == "x/y"


def test_a_key_that_is_too_long(op: Operator) -> None:
    """InvalidInput before a request; 1,024 bytes of UTF-8 with the root are the limit."""
    with pytest.raises(InvalidInput, match="too long"):
        op.write("é" * 600, b"1")


def test_tags_that_may_not_be_read(op: Operator, through: Operator, proxy: FaultProxy) -> None:
    """A stat is not refused for the sake of tags; they are unknown then."""
    op.write("x", b"1", tags={"a": "b"})
    denied = Reply(403, {}, b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>")
    proxy.add(Fault(method="GET", contains="?tagging", times=None, reply=denied))
    assert through.stat("x").tags is None
    assert through.stat("x").size == 1
    proxy.add(Fault(method="HEAD", times=None, reply=denied))
    with pytest.raises(PermissionDenied):
        through.stat("x")
