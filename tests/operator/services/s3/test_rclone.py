"""``rclone serve s3``: a server of another kind, that obeys little of what is asked."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from calque.errors import ConditionNotMatch, Unavailable
from calque.operator import Operator
from calque.operator.service import WriteAgain
from calque.operator.services.s3 import marker
from calque.operator.services.s3.uploads import Uploads
from calque.values import MIB
from tests.operator.behaviour.case import content
from tests.operator.services.s3.conftest import QUICK
from tests.operator.services.s3.server import client_of
from tests.servers.rclone import rclone
from tests.servers.seaweedfs import S3Server


@pytest.fixture(scope="module")
def another() -> Iterator[S3Server]:
    """One for all tests here."""
    with rclone("bucket") as running:
        yield running


def _open(another: S3Server, **options: object) -> Operator:
    return Operator.from_uri(
        "s3://bucket/root",
        endpoint_url=another.endpoint,
        access_key_id=another.access_key,
        secret_access_key=another.secret_key,
        region=another.region,
        layers=QUICK,
        **options,
    )


@pytest.mark.parametrize("size", [0, 1, 8 * MIB, 8 * MIB + 1, 20 * MIB])
def test_writes_of_every_size(another: S3Server, size: int) -> None:
    """Above a part too, by an operator that knows nothing of the server."""
    data = content(size)
    op = _open(another)
    op.write(f"s{size}", data)
    assert op.read(f"s{size}") == data
    assert list(op.leftovers()) == []


def test_chunks_that_are_used_up(another: S3Server) -> None:
    """Only the caller has them again: said once, and right from then on."""
    data = content(20 * MIB)
    op = _open(another)
    with pytest.raises(WriteAgain, match="mark"):
        op.write("chunks", iter([data[:7], data[7:]]))
    assert not op.exists("chunks")
    op.write("chunks", iter([data[:7], data[7:]]))
    assert op.read("chunks") == data
    told = _open(another, upload_mark="size")
    told.write("told", iter([data]))
    assert told.read("told") == data


def test_a_copy_through_the_client(another: S3Server) -> None:
    """Reads its source once more where it must; every byte is counted once."""
    data = content(20 * MIB)
    source, op = Operator.from_uri("memory://"), _open(another)
    source.write("from", data)
    copier = source.copier("from", "to", into=op, stream=True)
    assert sum(copier) == len(data)
    assert op.read("to") == data


def test_what_a_killed_write_leaves_is_found(another: S3Server) -> None:
    """By the size of its parts; an upload of others is left alone."""
    client = client_of(another, "bucket", upload_mark="size")
    uploads = Uploads(client)
    ours = uploads.begin("killed", "root/killed", {})
    odd = marker.odd_size(5 * MIB)
    uploads.put("killed", "root/killed", ours, 1, content(odd), {})
    theirs = uploads.begin("other", "root/other", {})
    uploads.put("other", "root/other", theirs, 1, content(5 * MIB), {})
    op = _open(another)
    (left,) = op.leftovers()
    assert (left.id, left.size) == (ours, odd)
    op.remove_leftover(left)
    assert list(op.leftovers()) == []
    uploads.abort("other", "root/other", theirs)


def test_it_ignores_conditions_on_reads(another: S3Server) -> None:
    """So the reply's own ETag is compared."""
    op = _open(another)
    op.write("pinned", b"one")
    pin = op.stat("pinned").pin
    op.write("pinned", b"two")
    with pytest.raises(ConditionNotMatch):
        op.read("pinned", if_match=pin)


def test_sizes_that_are_a_mark() -> None:
    """Whole MiB and a bit, of all parts but the last; never of others' round ones."""
    assert marker.odd_size(8 * MIB) == 8 * MIB + marker.ODD
    assert marker.odd_size(8 * MIB + 1) == 9 * MIB + marker.ODD
    assert issubclass(WriteAgain, Unavailable)
