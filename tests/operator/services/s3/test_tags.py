"""Tags go along, or the copy says why they cannot: on both paths, and through the client."""

from __future__ import annotations

import pytest

from calque import copy_tree
from calque.errors import CalqueError, PermissionDenied, Unexpected, Unsupported
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


ODD_TAGS = (
    b"<Tagging><TagSet><Tag><Key><![CDATA[a]]></Key><Value>b</Value></Tag></TagSet></Tagging>",
    b"<t:Tagging xmlns:t='x'><t:Tag><t:Key>a</t:Key><t:Value>b</t:Value></t:Tag></t:Tagging>",
    b"<Tagging><TagSet><Tag x='1'><Value>b</Value>\n<Key>a</Key></Tag></TagSet></Tagging>",
)


@pytest.mark.parametrize("document", ODD_TAGS)
def test_tags_in_any_xml(op: Operator, open_at: Open, proxy: FaultProxy, document: bytes) -> None:
    """Other servers write the same document in other ways: no tag is lost by that."""
    op.write("from", content(LARGE), tags={"a": "b"})
    proxy.add(Fault(method="GET", contains="tagging", times=None, reply=Reply(200, {}, document)))
    open_at(proxy.endpoint).copy("from", "to")
    assert op.stat("to").tags == {"a": "b"}


def test_what_is_no_document_of_tags(op: Operator, open_at: Open, proxy: FaultProxy) -> None:
    """A page of a proxy tells of no tags, and proves nothing; a server's word for none does."""
    op.write("from", content(LARGE), tags={"a": "b"})
    page = Reply(200, {}, b"<html><body>Please log in.</body></html>")
    proxy.add(Fault(method="GET", contains="tagging", times=None, reply=page))
    with pytest.raises(Unexpected, match="a page for people"):
        open_at(proxy.endpoint).copy("from", "to")
    assert not op.exists("to")
    proxy.reset()
    none = Reply(404, {}, b"<Error><Code>NoSuchTagSet</Code></Error>")
    proxy.add(Fault(method="GET", contains="tagging", times=None, reply=none))
    assert open_at(proxy.endpoint).copy("from", "to").size == LARGE


def test_small_objects_of_a_tree(op: Operator, open_at: Open, proxy: FaultProxy) -> None:
    """Tags that may not be read are not dropped by trees either; one question answers for all."""
    through = open_at(proxy.endpoint)
    for name in ("a", "b", "c"):
        op.write(f"tree/{name}", b"data")
    op.write("tree/d", b"data", tags={"a": "b"})
    into = Operator.from_uri("memory://tags-of-trees")
    proxy.add(Fault(method="GET", contains="tagging", times=None, reply=DENIED))
    proxy.add(Fault(method="GET", times=None, edit=lambda it: it.without("x-amz-tagging-count")))
    report = copy_tree(through, into)
    assert {row.error for row in report.problems} == {"PermissionDenied"}
    assert copy_tree(through, into, carry_tags=False).ok
    proxy.reset()
    again = Operator.from_uri("memory://tags-of-trees-again")
    assert copy_tree(open_at(proxy.endpoint), again, concurrent=1).ok
    assert again.stat("tree/d").tags == {"a": "b"}
    assert proxy.count("GET", "tagging") <= 2
