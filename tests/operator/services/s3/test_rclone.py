"""``rclone serve s3``: a server of another kind, that obeys little of what is asked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from calque import copy_tree
from calque.errors import ConditionNotMatch, Unavailable, Unsupported
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


def test_a_copy_in_parts_of_its_own(another: S3Server, tmp_path: Path) -> None:
    """As trees copy large objects: sent once more in another upload, and right from then on."""
    data = content(20 * MIB)
    (tmp_path / "large").write_bytes(data)
    (tmp_path / "larger").write_bytes(data + b"more")
    source, op = Operator.from_uri(tmp_path), _open(another)
    copier = source.copier("large", "parted", into=op, stream=True, stream_parts=True)
    assert sum(copier) == len(data)
    assert op.read("parted") == data
    assert copy_tree(source, _open(another), concurrent=2).ok
    assert op.read("larger") == data + b"more"
    assert list(op.leftovers()) == []


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


def _row() -> dict[str, str]:
    """The options that the docs name for this server."""
    page = (Path(__file__).parents[4] / "docs" / "s3.md").read_text()
    (row,) = (line for line in page.splitlines() if line.startswith("| `rclone serve s3` |"))
    return dict(re.findall(r"`(\w+)=([^`]+)`", row))


def test_the_doctor_finds_what_the_docs_say(another: S3Server) -> None:
    """Every question is answered although the server trips over some, and nothing is left."""
    op = _open(another)
    found = list(op.service.probe("doctor"))  # type: ignore[attr-defined]
    told = dict(probe.option.split("=", 1) for probe in found if probe.option)
    assert told == _row()
    assert {probe.name for probe in found if probe.ok} >= {"ranges", "order of listings"}
    assert list(op.list("doctor")) == []


def test_the_row_of_the_docs(another: S3Server) -> None:
    """With it reads, writes, copies, moves and listings work, and no condition is hoped for."""
    data = content(20 * MIB)
    op = _open(another, **_row())
    made = op.write("row/x", iter([data]))
    assert (made.size, op.read("row/x")) == (len(data), data)
    assert op.read("row/x", offset=9 * MIB, length=5) == data[9 * MIB :][:5]
    copied = op.copy("row/x", "row/y", carry_tags=False)
    assert (copied.size, op.read("row/y")) == (len(data), data)
    op.rename("row/y", "row/z")
    assert [entry.path for entry in op.list("row/")] == ["row/x", "row/z"]
    for refused in (
        lambda: op.read("row/x", if_match=made.etag),
        lambda: op.write("row/x", b"", if_not_exists=True),
        lambda: op.write("row/x", b"", if_match=made.etag),
        lambda: op.copy("row/z", "row/x", if_not_exists=True),
        lambda: op.copy("row/z", "row/x", if_not_exists=True, stream=True),
        lambda: op.delete("row/x", if_match=made.etag),
    ):
        with pytest.raises(Unsupported):
            refused()
    assert op.read("row/x") == data
    assert op.remove_all("row/") == 2
    assert list(op.leftovers()) == []


@pytest.mark.parametrize("span", [(0, 4), (3, 4), (9, 1), (4, None), (0, None), (20, 5)])
def test_ranges_that_come_as_200(another: S3Server, span: tuple[int, int | None]) -> None:
    """It answers a range with 200 and the part that it names: no byte is taken for another."""
    op = _open(another)
    op.write("ranged", b"0123456789")
    offset, length = span
    end = None if length is None else offset + length
    assert op.read("ranged", offset=offset, length=length) == b"0123456789"[offset:end]


def test_sizes_that_are_a_mark() -> None:
    """Whole MiB and a bit, of all parts but the last; never of others' round ones."""
    assert marker.odd_size(8 * MIB) == 8 * MIB + marker.ODD
    assert marker.odd_size(8 * MIB + 1) == 9 * MIB + marker.ODD
    assert issubclass(WriteAgain, Unavailable)
