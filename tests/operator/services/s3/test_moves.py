"""Moves on a server that takes two keys for one object."""

from __future__ import annotations

import time

import pytest

from calque.errors import ConditionNotMatch, IsSameFile
from calque.operator import Operator
from calque.operator.move import delete_moved
from calque.operator.options import CopyOptions
from calque.values import MIB
from tests.operator.behaviour.case import content
from tests.operator.services.s3.conftest import Open
from tests.servers.proxy import Exchange, Fault, FaultProxy

ALIASES = [("x//y", "x/y"), ("a///b/c", "a/b/c")]


@pytest.mark.parametrize(("source", "target"), ALIASES)
@pytest.mark.parametrize("size", [1000, 11 * MIB], ids=["one request", "parts"])
@pytest.mark.parametrize("stream", [False, True], ids=["server-side", "streamed"])
def test_the_only_object_is_never_deleted(
    op: Operator, source: str, target: str, size: int, stream: bool
) -> None:
    """SeaweedFS collapses slashes: the move is refused and the object is there, whole."""
    data = content(size)
    op.write(target, data)
    assert op.read(source) == data, "this server was to take both keys for one"
    with pytest.raises((IsSameFile, ConditionNotMatch)):
        op.rename(source, target, stream=stream)
    assert op.read(target) == data


def test_an_object_that_is_written_between_two_looks(
    op: Operator, open_at: Open, proxy: FaultProxy
) -> None:
    """The same bytes, a second later: one object then looks like two, and is not deleted."""
    op.write("x/y", b"data")
    looks = 0

    def touch(asked: Exchange) -> None:
        nonlocal looks
        looks += 1
        if looks % 3 == 2:  # after the source, before the target
            time.sleep(1.1)
            op.write("x/y", b"data")

    through = open_at(proxy.endpoint, delete_if_match=False)
    source = through.stat("x//y")
    proxy.add(Fault(method="HEAD", times=None, hook=touch))
    into = through.service
    with pytest.raises((IsSameFile, ConditionNotMatch)):
        delete_moved(into, source, into, "x/y", CopyOptions())
    assert looks >= 3
    assert op.read("x/y") == b"data"


def test_one_server_by_two_names(op: Operator, open_at: Open) -> None:
    """An object is not lost either where the same server is reached under another name."""
    op.write("x", b"data")
    again = open_at(op_endpoint(op).replace("127.0.0.1", "localhost"))
    with pytest.raises((IsSameFile, ConditionNotMatch)):
        op.rename("x", "x", into=again, stream=True)
    assert op.read("x") == b"data"


def op_endpoint(op: Operator) -> str:
    """Where an operator's server is."""
    return op.service.handover().origin  # type: ignore[attr-defined,no-any-return]
