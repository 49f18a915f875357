"""Servers that do not keep every condition: what is said of them is refused, never hoped for."""

from __future__ import annotations

import pytest

from calque.errors import ConditionNotMatch, Unsupported
from calque.operator.options import Streaming
from calque.values import MIB
from tests.operator.behaviour.case import content
from tests.operator.services.s3.conftest import Open
from tests.servers.proxy import Exchange, Fault, FaultProxy
from tests.servers.seaweedfs import S3Server

SIZES = pytest.mark.parametrize("size", [1000, 11 * MIB], ids=["one request", "parts"])


@SIZES
@pytest.mark.parametrize("stream", [True, "auto"])
def test_copies_without_conditions_are_streamed(
    open_at: Open, size: int, stream: Streaming
) -> None:
    """Where CopyObject keeps none, the write that is allowed instead keeps them."""
    op = open_at(copy_if_not_exists="none")
    op.write("from", content(size))
    op.write("to", b"old")
    with pytest.raises(ConditionNotMatch):
        op.copy("from", "to", if_not_exists=True, stream=stream)
    with pytest.raises(ConditionNotMatch):
        op.copy("from", "to", if_match="0" * 32, stream=stream)
    assert op.read("to") == b"old"
    copier = op.copier("from", "to", if_match=op.stat("to").etag, stream=stream)
    assert copier.route == "through the client"
    assert copier.run().size == size
    with pytest.raises(Unsupported, match="if_not_exists"):
        op.copy("from", "new", if_not_exists=True)
    assert not op.exists("new")


def test_writes_without_conditions(open_at: Open) -> None:
    """write_conditions="none": refused before anything is sent, whatever the size."""
    partly = open_at(write_conditions="if_not_exists")
    with pytest.raises(Unsupported):
        partly.write("x", b"small", if_match="0" * 32)
    op = open_at(write_conditions="none")
    for data in (b"small", content(11 * MIB)):
        with pytest.raises(Unsupported):
            op.write("x", data, if_not_exists=True)
        with pytest.raises(Unsupported):
            op.write("x", data, if_match="0" * 32)
    assert not op.exists("x")
    op.write("from", b"data")
    with pytest.raises(Unsupported):
        op.copy("from", "x", if_not_exists=True, stream=True)
    op.copy("from", "x", if_not_exists=True)
    assert op.read("x") == b"data"


def test_commits_without_conditions(open_at: Open) -> None:
    """commit_conditions="none": large writes and copies with one are refused, small ones kept."""
    op = open_at(commit_conditions="none")
    large = content(11 * MIB)
    op.write("large", large)
    op.write("small", b"data", if_not_exists=True)
    for stream in (False, True):
        with pytest.raises(Unsupported, match="commit_conditions"):
            op.copy("large", "x", if_not_exists=True, stream=stream)
    with pytest.raises(Unsupported, match="commit_conditions"):
        op.write("x", [large[:5], large[5:]], if_match="0" * 32)
    assert not op.exists("x")
    assert list(op.leftovers()) == []
    with pytest.raises(ConditionNotMatch):
        op.write("small", b"more", if_not_exists=True)
    partly = open_at(commit_conditions="if_not_exists")
    with pytest.raises(Unsupported, match="commit_conditions"):
        partly.copy("large", "small", if_match=op.stat("small").etag)
    partly.copy("large", "new", if_not_exists=True)
    multipart = open_at(commit_conditions="none", copy_if_not_exists="multipart")
    with pytest.raises(Unsupported):
        multipart.copy("small", "x", if_not_exists=True)


def test_deletes_and_reads_without_conditions(open_at: Open) -> None:
    """delete_if_match=false and read_if_match=false: refused, and nothing is deleted."""
    op = open_at(delete_if_match=False, read_if_match=False)
    op.write("x", b"data")
    with pytest.raises(Unsupported):
        op.delete("x", if_match="0" * 32)
    with pytest.raises(Unsupported):
        op.read("x", if_match="0" * 32)
    assert op.read("x") == b"data"
    op.rename("x", "y")
    assert [entry.path for entry in op.list()] == ["y"]


def test_pins_hold_where_the_server_ignores_them(moto_server: S3Server, open_at: Open) -> None:
    """A file that was opened, and a stream under way, never mix the bytes of two objects."""

    def unconditional(asked: Exchange) -> None:
        asked.headers.pop("if-match", None)  # type: ignore[attr-defined]

    with FaultProxy(moto_server.endpoint) as proxy:
        proxy.add(Fault(method="GET", header="if-match", times=None, hook=unconditional))
        op = open_at(
            proxy.endpoint,
            access_key_id=moto_server.access_key,
            secret_access_key=moto_server.secret_key,
            read_if_match=False,
        )
        op.write("x", content(3 * MIB))
        copier = op.copier("x", "y", stream=True)
        with op.open("x") as file:
            file.read(10)
            op.write("x", content(3 * MIB))
            file.seek(2 * MIB)
            with pytest.raises(ConditionNotMatch):
                file.read(10)
        with pytest.raises(ConditionNotMatch):
            copier.run()
        assert not op.exists("y")
