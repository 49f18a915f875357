"""What killed copies and writes leave behind is found by our marker, and nothing else is."""

from __future__ import annotations

import pytest

from calque.errors import InvalidInput, PermissionDenied
from calque.operator import Operator
from calque.operator.drivers.verbs import Part
from calque.operator.service import Leftover
from calque.operator.services.s3 import marker
from calque.operator.services.s3.client import Client, Request
from calque.operator.services.s3.replies import leaves
from calque.operator.services.s3.uploads import Uploads
from tests.operator.behaviour.case import content
from tests.operator.services.s3.conftest import BUCKET, PART, Open
from tests.operator.services.s3.server import client_of
from tests.servers.proxy import Fault, FaultProxy, Reply
from tests.servers.seaweedfs import S3Server


@pytest.fixture
def client(server: S3Server) -> Client:
    return client_of(server, BUCKET)


def root_of(op: Operator) -> str:
    return op.location("").removeprefix(f"s3://{BUCKET}/")


def foreign_upload(client: Client, key: str, *, parts: int) -> str:
    """An upload as any other program would begin it."""
    answer = client.send("begin", "", Request("POST", key, query=(("uploads", ""),)))
    upload = leaves(answer.body)["UploadId"]
    for number in range(1, parts + 1):
        Uploads(client).put("", key, upload, number, b"theirs", {})
    return upload


def test_only_ours_are_found(op: Operator, client: Client) -> None:
    """Another program's upload in the same place is not named, let alone removed."""
    theirs = foreign_upload(client, root_of(op) + "to", parts=2)
    last = foreign_upload(client, root_of(op) + "last", parts=0)
    Uploads(client).put("", root_of(op) + "last", last, marker.NUMBER, b"theirs", {})
    op.write("from", content(2 * PART + 1))
    copier = op.copier("from", "to", concurrent=1, chunk=PART)
    next(copier)
    (found,) = op.leftovers()
    assert found.location == op.location("to")
    assert found.kind == "multipart upload"
    assert found.size is not None
    assert found.size >= PART
    assert found.started is not None
    op.remove_leftover(found)
    assert list(op.leftovers()) == []
    left = {each.upload for each in Uploads(client).list_unfinished("", root_of(op))}
    assert left == {theirs, last}
    copier.abort()


def test_a_prefix_bounds_the_search(op: Operator, client: Client) -> None:
    """Uploads of another prefix are not looked at; keys of any kind are named exactly."""
    uploads = Uploads(client)
    odd = root_of(op) + "x/ü +%&?'\"<>🙂"
    mine = uploads.begin("", odd, {})
    other = uploads.begin("", root_of(op) + "y/1", {})
    (found,) = op.leftovers("x/")
    assert found.id == mine
    assert found.location == f"s3://{BUCKET}/{odd}"
    for each in list(op.leftovers()):
        op.remove_leftover(each)
    assert list(op.leftovers()) == []
    assert other != mine


def test_an_upload_without_any_part(op: Operator, open_at: Open, client: Client) -> None:
    """A copy killed in its first instant leaves one; it is named only where that was asked for."""
    foreign_upload(client, root_of(op) + "to", parts=0)
    assert list(op.leftovers()) == []
    (found,) = open_at(sweep_empty=True).leftovers()
    op.remove_leftover(found)
    assert not list(Uploads(client).list_unfinished("", root_of(op)))


def test_more_uploads_than_a_page(op: Operator, client: Client) -> None:
    """All are found."""
    uploads = Uploads(client)
    begun = {uploads.begin("", f"{root_of(op)}k{number % 3}", {}) for number in range(12)}
    assert {each.id for each in op.leftovers()} == begun
    for each in list(op.leftovers()):
        op.remove_leftover(each)


def test_a_leftover_of_another_bucket_is_refused(op: Operator) -> None:
    """InvalidInput: its key would mean something else here."""
    with pytest.raises(InvalidInput):
        op.remove_leftover(Leftover("s3://other/x", "multipart upload", "id", None))


def test_a_leftover_that_is_gone_is_no_error(op: Operator) -> None:
    """Two sweeps may meet."""
    op.write("from", content(2 * PART + 1))
    copier = op.copier("from", "to", concurrent=1, chunk=PART)
    next(copier)
    (found,) = op.leftovers()
    op.remove_leftover(found)
    op.remove_leftover(found)
    copier.abort()


def test_the_marker_is_told_by_its_bytes() -> None:
    """By ETag or checksum; a part of the same number and size is not enough."""
    size = len(marker.BYTES)
    assert marker.is_marker(Part(10_000, marker.ETAG, size))
    assert marker.is_marker(Part(10_000, "kms-etag", size, marker.CHECKSUMS["crc64nvme"]))
    assert not marker.is_marker(Part(10_000, "kms-etag", size))
    assert not marker.is_marker(Part(9_999, marker.ETAG, size))
    assert not marker.is_marker(Part(10_000, marker.ETAG, size + 1))


def test_checksums_of_the_marker() -> None:
    """The bitwise CRCs are the standard ones: their check values are published."""
    nine = b"123456789"
    assert marker._reflected_crc(nine, 0x82F63B78, 32) == "4waSgw=="  # E3069283
    assert marker._reflected_crc(nine, 0x9A6C9329AC4BC9B5, 64) == "rosUhgp5mIg="  # AE8B14860A799888
    assert marker.crc32(nine) == "y/Q5Jg=="  # CBF43926


def test_data_never_uses_the_markers_number() -> None:
    """A plan of the largest object leaves part 10,000 free."""
    assert marker.LIMITS.most == marker.NUMBER - 1


def test_a_sweep_goes_on_after_what_it_may_not_read(
    op: Operator, through: Operator, proxy: FaultProxy
) -> None:
    """All that may be looked at is found; then what could not is told."""
    client = op.service._client  # type: ignore[attr-defined]
    uploads = Uploads(client)
    names = ("a", "b", "c")
    begun = {name: uploads.begin(name, op.service._key(name), {}) for name in names}  # type: ignore[attr-defined]
    denied = Reply(403, {}, b"<Error><Code>AccessDenied</Code></Error>")
    proxy.add(Fault(method="GET", contains=f"uploadId={begun['a']}", times=None, reply=denied))
    found: list[str] = []
    with pytest.raises(PermissionDenied):
        _gather(through, found)
    assert sorted(found) == ["b", "c"]
    for left in op.leftovers():
        op.remove_leftover(left)


def _gather(op: Operator, found: list[str]) -> None:
    for left in op.leftovers():
        found.append(left.location[-1])  # noqa: PERF401 - kept when it breaks off


@pytest.mark.parametrize("size", [10, 20 * 1024 * 1024])
def test_names_of_metadata_that_differ_only_in_case(op: Operator, size: int) -> None:
    """S3 would keep one of them: refused, before anything is written."""
    with pytest.raises(InvalidInput, match="'name' and 'Name'"):
        op.write("x", bytes(size), user={"name": "1", "Name": "2"})
    assert not op.exists("x")
