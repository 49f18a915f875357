"""Tags go along, or the copy says why they cannot: on both paths, and through the client."""

from __future__ import annotations

import pytest

from calque.errors import CalqueError, PermissionDenied, Unsupported
from calque.operator import Operator
from tests.operator.behaviour.case import content
from tests.operator.services.s3.conftest import PART, Open
from tests.servers.proxy import Fault, FaultProxy, Reply

DENIED = Reply(403, {}, b"<Error><Code>AccessDenied</Code><Message>no</Message></Error>")
NO_TAGS = Reply(501, {}, b"<Error><Code>NotImplemented</Code><Message>no</Message></Error>")
LARGE = 2 * PART + 1


def _uncounted(proxy: FaultProxy) -> None:
    """What Amazon answers to whoever may not read tags: a HEAD does not tell of any."""
    proxy.add(
        Fault(method="HEAD", times=None, edit=lambda reply: reply.without("x-amz-tagging-count"))
    )


@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("stream", [False, True], ids=["parts", "through the client"])
def test_tags_that_may_not_be_read(
    op: Operator, open_at: Open, proxy: FaultProxy, counted: bool, stream: bool
) -> None:
    """PermissionDenied before anything is written; carry_tags=False leaves them on purpose."""
    through = open_at(proxy.endpoint)
    op.write("from", content(LARGE), tags={"a": "b"})
    proxy.add(Fault(method="GET", contains="tagging", times=None, reply=DENIED))
    if not counted:
        _uncounted(proxy)
    with pytest.raises(PermissionDenied) as caught:
        through.copy("from", "to", stream=stream)
    assert "carry_tags" in (caught.value.hint or "")
    assert not op.exists("to")
    assert list(op.leftovers()) == []
    through.copy("from", "to", stream=stream, carry_tags=False)
    assert op.stat("to").tags == {}


@pytest.mark.parametrize("stream", [False, True], ids=["parts", "through the client"])
def test_a_server_without_tags(
    op: Operator, open_at: Open, proxy: FaultProxy, stream: bool
) -> None:
    """501 is believed, unless tags are counted: those are not dropped."""
    through = open_at(proxy.endpoint)
    proxy.add(Fault(method="GET", contains="tagging", times=None, reply=NO_TAGS))
    op.write("plain", content(LARGE))
    assert through.copy("plain", "to", stream=stream).size == LARGE
    op.write("tagged", content(LARGE), tags={"a": "b"})
    with pytest.raises((Unsupported, CalqueError)):
        through.copy("tagged", "other", stream=stream)
    assert not op.exists("other")


def test_tags_that_are_not_counted(op: Operator, open_at: Open, proxy: FaultProxy) -> None:
    """A server that counts no tags but has some: they are carried over."""
    through = open_at(proxy.endpoint)
    op.write("from", content(LARGE), tags={"a": "b"})
    _uncounted(proxy)
    through.copy("from", "to")
    assert op.stat("to").tags == {"a": "b"}
