"""Copies within Azure: requests, pins, conditions, metadata, failures."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from calque.errors import (
    Aborted,
    ConditionNotMatch,
    IntegrityError,
    NotFound,
    PermissionDenied,
    RateLimited,
    Unavailable,
    Unexpected,
)
from calque.operator import Operator
from calque.operator.layers import ConcurrencyLimit
from tests.operator.recorder import Hook, Recorder
from tests.operator.services.azblob.conftest import PART, SOON, THRESHOLD, Account
from tests.servers.proxy import Exchange, Fault, FaultProxy, Reply

SMALL, LARGE = b"small" * 10, bytes(range(256)) * (THRESHOLD // 256) + b"and a tail"
TAGS = {"team": "data + more", "stage": "x"}


def from_url(exchange: Exchange) -> bool:
    return "x-ms-copy-source" in exchange.headers


def test_paths_by_size(op: Operator) -> None:
    """One request up to the threshold; blocks and one commit above it."""
    seen = Recorder()
    layered = op.layer(seen)
    op.write("s", LARGE[:THRESHOLD])
    op.write("l", LARGE)
    assert list(layered.copier("s", "s2")) == [THRESHOLD]
    assert (seen.count("copy"), seen.count("copy_part")) == (1, 0)
    steps = list(layered.copier("l", "l2", concurrent=2))
    assert sorted(steps) == [10, PART, PART, PART, PART]
    assert (seen.count("copy_part"), seen.count("commit")) == (5, 1)
    assert op.read("l2") == LARGE


def test_another_account(op: Operator, elsewhere: Account) -> None:
    """The source's account signs for its blob, whichever account copies."""
    there = elsewhere.open()
    for name, data in {"s": SMALL, "l": LARGE}.items():
        op.write(name, data, user={"k": "v"}, tags=TAGS)
        made = op.copy(name, name, into=there)
        assert there.read(name) == data
        assert dict(made.user) == {"k": "v"}
        assert dict(there.stat(name).tags or {}) == TAGS


def test_every_source_is_pinned_and_signed_anew(
    op: Operator, shaky: Operator, proxy: FaultProxy
) -> None:
    """Each block carries the source's etag and a short-lived signature of its own request."""
    op.write("l", LARGE)
    etag = op.stat("l").etag
    shaky.copy("l", "l2")
    staged = [each for each in proxy.seen("PUT") if from_url(each)]
    assert len(staged) == 5
    for exchange in staged:
        assert exchange.headers["x-ms-source-if-match"] == f'"{etag}"'
        assert "sp=r&" in exchange.headers["x-ms-copy-source"] + "&"
        assert "sig=" in exchange.headers["x-ms-copy-source"]


@pytest.mark.parametrize("data", [SMALL, LARGE])
def test_what_is_carried(op: Operator, account: Account, data: bytes) -> None:
    """Headers, metadata, tags and, when asked, the tier; Microsoft's client sees the same."""
    stamp = "Wed, 21 Oct 2026 07:28:00 GMT"
    op.write(
        "from",
        data,
        content_type="text/csv",
        content_language="de",
        cache_control="no-store",
        content_disposition="inline",
        expires=stamp,
        user={"run-id": "42", "owner": "me"},
        tags=TAGS,
        storage_class="Cool",
    )
    op.copy("from", "plain")
    op.copy("from", "cool", carry_class=True, if_not_exists=True)
    op.copy("from", "bare", carry_metadata=False, carry_tags=False)
    for name in ("plain", "cool"):
        found = op.stat(name)
        assert (found.content_type, found.content_language) == ("text/csv", "de")
        assert (found.cache_control, found.content_disposition) == ("no-store", "inline")
        assert (found.expires, dict(found.user)) == (stamp, {"run-id": "42", "owner": "me"})
        assert dict(found.tags or {}) == TAGS
    client = account.client()
    tiers = {name: client.get_blob_client(name).get_blob_properties() for name in ("plain", "cool")}
    assert (tiers["plain"].blob_tier, tiers["cool"].blob_tier) == ("Hot", "Cool")
    assert tiers["plain"].metadata["owner"] == "me"
    assert client.get_blob_client("plain").get_blob_tags() == TAGS
    bare = op.stat("bare")
    assert (bare.content_type, dict(bare.user), dict(bare.tags or {}), bare.expires) == (
        "application/octet-stream",
        {},
        {},
        None,
    )


def test_an_empty_blob_without_its_metadata(op: Operator) -> None:
    """The one-request path of an empty blob keeps to the wishes too, and to the condition."""
    op.write("from", b"", content_type="text/csv", user={"k": "v"})
    made = op.copy("from", "to", carry_metadata=False, if_not_exists=True)
    assert (made.size, made.content_type, dict(made.user)) == (0, "application/octet-stream", {})
    with pytest.raises(ConditionNotMatch):
        op.copy("from", "to", carry_metadata=False, if_not_exists=True)


def test_a_conditional_copy_shows_no_mark(op: Operator) -> None:
    """What tells our own work is hidden from metadata, and not carried on by later copies."""
    op.write("from", SMALL, user={"k": "v"})
    for name, source in (("one", "from"), ("two", "one")):
        op.copy(source, name, if_not_exists=True)
        assert dict(op.stat(name).user) == {"k": "v"}
        assert [dict(entry.user) for entry in op.list(name)] == [{"k": "v"}]


@pytest.mark.parametrize("data", [SMALL, LARGE])
@pytest.mark.parametrize("status", [409, 412])
def test_both_refusals_of_if_none_match(
    op: Operator, shaky: Operator, proxy: FaultProxy, data: bytes, status: int
) -> None:
    """The service answers 409 or 412; both mean that the target exists."""
    op.write("from", data)
    code = {409: "BlobAlreadyExists", 412: "TargetConditionNotMet"}[status]
    refused = Reply(status, {"x-ms-error-code": code})
    proxy.add(Fault(method="PUT", header="if-none-match", reply=refused))
    with pytest.raises(ConditionNotMatch):
        shaky.copy("from", "to", if_not_exists=True)
    assert not op.exists("to")
    assert list(op.leftovers()) == []


@pytest.mark.parametrize("data", [SMALL, LARGE])
def test_a_lost_answer_is_no_lost_race(
    op: Operator, shaky: Operator, proxy: FaultProxy, data: bytes
) -> None:
    """The commit acted and its answer was lost: the repeat finds its own blob."""
    op.write("from", data)
    proxy.add(Fault(method="PUT", header="if-none-match", drop=True, acted=True))
    made = shaky.copy("from", "to", if_not_exists=True)
    assert op.read("to") == data
    assert op.stat("to").etag == made.etag
    proxy.add(Fault(method="PUT", header="if-none-match", drop=True))
    with pytest.raises(ConditionNotMatch):
        shaky.copy("from", "to", if_not_exists=True)


def test_blocks_that_fail_are_repeated_and_counted_once(
    op: Operator, shaky: Operator, proxy: FaultProxy
) -> None:
    """503, 429, a dropped connection, a lost answer, a cut reply."""
    op.write("from", LARGE)
    cases = [
        Fault(where=from_url, times=2, reply=Reply(503)),
        Fault(where=from_url, reply=Reply(429, {"Retry-After": "0"})),
        Fault(where=from_url, drop=True),
        Fault(where=from_url, drop=True, acted=True),
        Fault(contains="comp=blocklist", method="PUT", drop=True, acted=True),
        Fault(contains="comp=blocklist", method="PUT", reply=Reply(500)),
    ]
    for number, fault in enumerate(cases):
        proxy.add(fault)
        assert sum(shaky.copier("from", f"to{number}")) == len(LARGE)
        assert fault.hits
        assert op.read(f"to{number}") == LARGE


def test_a_block_that_never_works_leaves_nothing(
    op: Operator, shaky: Operator, proxy: FaultProxy
) -> None:
    """The first error is raised, staged blocks are discarded; no such blob, no leftover."""
    op.write("from", LARGE)
    proxy.add(Fault(where=from_url, after=2, times=None, reply=Reply(503)))
    with pytest.raises((Unavailable, RateLimited)):
        shaky.copy("from", "to")
    assert not op.exists("to")
    assert list(op.leftovers()) == []


@pytest.mark.parametrize("data", [SMALL, LARGE])
def test_a_target_survives_a_failed_copy(
    op: Operator, shaky: Operator, proxy: FaultProxy, data: bytes
) -> None:
    """Another tool deletes the target then; we must not, nor change its etag."""
    op.write("from", data)
    before = op.write("to", b"precious", user={"k": "v"})
    proxy.add(Fault(where=from_url, after=1 if data is LARGE else 0, times=None, reply=Reply(403)))
    with pytest.raises(PermissionDenied):
        shaky.copy("from", "to")
    after = op.stat("to")
    assert (op.read("to"), after.etag, dict(after.user)) == (b"precious", before.etag, {"k": "v"})


def test_a_target_that_appears_before_the_discard_survives(
    op: Operator, shaky: Operator, proxy: FaultProxy
) -> None:
    """Between looking and deleting another writer creates the blob: the delete is refused."""
    op.write("from", LARGE)
    proxy.add(Fault(where=from_url, after=2, times=None, reply=Reply(403)))
    proxy.add(Fault(method="DELETE", hook=lambda _: op.write("to", b"theirs") and None))
    with pytest.raises(PermissionDenied):
        shaky.copy("from", "to", concurrent=1)
    assert proxy.count("DELETE") == 1
    assert op.read("to") == b"theirs"


def test_blocks_of_another_writer_are_spared(op: Operator, account: Account) -> None:
    """Deleting would take everybody's staged blocks: ours are left to the service instead."""
    op.write("from", LARGE)
    copier = op.copier("from", "to", concurrent=1)
    next(copier)
    block = "x" * len(blocks_of(account)[0])
    account.client().get_blob_client("to").stage_block(block, b"theirs")
    copier.abort()
    assert block in blocks_of(account)


def blocks_of(account: Account) -> list[str]:
    _, staged = account.client().get_blob_client("to").get_block_list("all")
    return [block.id for block in staged]


def test_another_write_throws_the_blocks_away(
    op: Operator, shaky: Operator, proxy: FaultProxy
) -> None:
    """The service then says InvalidBlockList: everything is staged again, and counted once."""
    op.write("from", LARGE)
    gone = Reply(400, {"x-ms-error-code": "InvalidBlockList"})
    proxy.add(Fault(method="PUT", contains="comp=blocklist", reply=gone))
    assert sum(shaky.copier("from", "to")) == len(LARGE)
    assert op.read("to") == LARGE
    assert sum(from_url(each) for each in proxy.seen("PUT")) == 10


def test_a_target_that_appears_midway(op: Operator) -> None:
    """The commit of an if_not_exists is refused and the other blob stands."""
    op.write("from", LARGE)
    copier = op.copier("from", "to", concurrent=1, if_not_exists=True)
    next(copier)
    op.write("to", b"between")
    with pytest.raises(ConditionNotMatch):
        copier.run()
    assert op.read("to") == b"between"


@pytest.mark.parametrize("data", [SMALL, LARGE])
@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda op: op.write("from", b"other"), ConditionNotMatch),
        (lambda op: op.delete("from"), NotFound),
    ],
)
def test_a_source_that_changes(
    op: Operator, data: bytes, change: Callable[[Operator], object], error: type[Exception]
) -> None:
    """Replaced or deleted before a request: the right error, and no target."""
    op.write("from", data)
    copier = op.copier("from", "to", concurrent=1)
    if data is LARGE:
        next(copier)
    change(op)
    with pytest.raises(error, match="source"):
        copier.run()
    assert not op.exists("to")
    assert list(op.leftovers()) == []


def with_status(status: str) -> Callable[[Reply], Reply]:
    """An answer that says how a copy stands; Azurite itself only knows success."""

    def edit(reply: Reply) -> Reply:
        named = reply.without("x-ms-copy-status")
        told = {"x-ms-copy-status": status, "x-ms-copy-status-description": "as told"}
        return Reply(named.status, {**named.headers, **told}, named.body)

    return edit


def test_a_block_of_another_size_is_never_committed(
    op: Operator, shaky: Operator, proxy: FaultProxy
) -> None:
    """A server that stores something else than the range: found before the commit."""
    op.write("from", LARGE)
    op.write("to", b"old")

    def shrink(reply: Reply) -> Reply:
        text = reply.body.replace(b"<Size>%d</Size>" % PART, b"<Size>0</Size>", 1)
        return Reply(reply.status, reply.headers, text)

    proxy.add(Fault(method="GET", contains="blocklist", edit=shrink))
    with pytest.raises(IntegrityError, match="holds 0 bytes"):
        shaky.copy("from", "to")
    assert op.read("to") == b"old"


@pytest.mark.parametrize("data", [SMALL, LARGE])
def test_another_writer_right_after(
    op: Operator, shaky: Operator, proxy: FaultProxy, data: bytes
) -> None:
    """The copy tells of the blob it made, never of the one that has replaced it since."""
    op.write("from", data)
    proxy.add(
        Fault(method="HEAD", contains="/to", hook=lambda _: op.write("to", b"theirs") and None)
    )
    made = shaky.copy("from", "to")
    assert made.size == len(data)
    assert made.etag != op.stat("to").etag
    assert op.read("to") == b"theirs"


def test_one_place_is_enough(account: Account, proxy: FaultProxy) -> None:
    """No request waits for another of the same copy, even when answers are lost."""
    port = int(proxy.endpoint.rpartition(":")[2])
    op = account.open(port=port, layers=(*SOON, ConcurrencyLimit(1)))
    for name, data in {"s": SMALL, "l": LARGE}.items():
        proxy.add(Fault(method="PUT", header="if-none-match", times=2, drop=True, acted=True))
        op.write(name, data, if_not_exists=True)
        op.copy(name, name + "2", if_not_exists=True)
        copier = op.copier(name, name + "3")
        op.write(name, data)
        with pytest.raises(ConditionNotMatch):
            copier.run()


def test_an_answer_without_an_etag(op: Operator, shaky: Operator, proxy: FaultProxy) -> None:
    """A success that does not say what it made is an error."""
    op.write("from", SMALL)
    proxy.add(Fault(where=from_url, edit=lambda reply: reply.without("etag")))
    with pytest.raises(Unexpected, match="etag"):
        shaky.copy("from", "to")


def test_a_pending_copy_is_waited_for(op: Operator, shaky: Operator, proxy: FaultProxy) -> None:
    """Until the service says success."""
    op.write("from", SMALL)
    proxy.add(Fault(where=from_url, edit=with_status("pending")))
    proxy.add(Fault(method="HEAD", contains="/to", times=2, edit=with_status("pending")))
    assert shaky.copy("from", "to").size == len(SMALL)
    assert proxy.count("HEAD", "/to") >= 3


@pytest.mark.parametrize(("status", "error"), [("failed", Unexpected), ("aborted", Aborted)])
def test_a_pending_copy_that_fails(
    op: Operator, shaky: Operator, proxy: FaultProxy, status: str, error: type[Exception]
) -> None:
    """Failed and aborted are errors that tell the reason."""
    op.write("from", SMALL)
    proxy.add(Fault(where=from_url, edit=with_status("pending")))
    proxy.add(Fault(method="HEAD", contains="/to", edit=with_status(status)))
    with pytest.raises(error, match="as told"):
        shaky.copy("from", "to")


def with_pending_copy(reply: Reply) -> Reply:
    named = {**with_status("pending")(reply).headers, "x-ms-copy-id": "the-copy"}
    return replace(reply, headers=named)


@pytest.mark.parametrize("given_up_by", [Unexpected, KeyboardInterrupt])
def test_a_pending_copy_that_is_given_up(
    op: Operator, shaky: Operator, proxy: FaultProxy, given_up_by: type[BaseException]
) -> None:
    """It is aborted at the server, which would go on with it otherwise."""

    def give_up(number: int) -> None:
        if number >= 2:
            raise given_up_by("enough")

    op.write("from", SMALL)
    proxy.add(Fault(where=from_url, edit=with_pending_copy))
    proxy.add(Fault(method="HEAD", contains="/to", times=None, edit=with_pending_copy))
    proxy.add(Fault(method="PUT", contains="comp=copy", reply=Reply(204)))
    with pytest.raises(given_up_by) as caught:
        shaky.layer(Hook("stat", give_up)).copy("from", "to")
    asked = proxy.seen("PUT", "comp=copy&copyid=the-copy")
    assert [each.headers["x-ms-copy-action"] for each in asked] == ["abort"]
    assert getattr(caught.value, "__notes__", []) == []


def test_no_signature_in_any_error(
    op: Operator, account: Account, shaky: Operator, proxy: FaultProxy
) -> None:
    """Neither the account's key nor the source's SAS, in messages, notes and causes."""
    op.write("from", LARGE)
    for fault in (
        Fault(where=from_url, times=None, reply=Reply(403)),
        Fault(where=from_url, times=None, drop=True),
        Fault(where=from_url, times=None, reply=Reply(500)),
    ):
        proxy.reset()
        proxy.add(fault)
        with pytest.raises((PermissionDenied, Unavailable)) as raised:
            shaky.copy("from", "to")
        shown: list[str] = []
        error: BaseException | None = raised.value
        for _ in range(20):
            shown += [str(error), repr(error), *getattr(error, "__notes__", [])]
            error = error and (error.__cause__ or error.__context__)
        assert error is None
        assert not re.search(r"sig=|" + re.escape(account.azurite.keys[account.name]), str(shown))
