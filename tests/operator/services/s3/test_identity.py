"""Equal names on two servers, or of two accounts, are two objects."""

from __future__ import annotations

from dataclasses import replace

import pytest

from calque.errors import CheckpointInvalid, IsSameFile, Unsupported
from calque.operator import Operator
from tests.operator.behaviour.case import content
from tests.operator.services.s3.conftest import PART, Open
from tests.servers.proxy import Exchange, Fault, FaultProxy, Reply
from tests.servers.seaweedfs import S3Server


@pytest.fixture
def elsewhere(moto_server: S3Server, open_at: Open) -> Operator:
    """The same bucket and root on another server."""
    return open_at(
        moto_server.endpoint,
        region=moto_server.region,
        access_key_id=moto_server.access_key,
        secret_access_key=moto_server.secret_key,
        source_pins=False,
        copy_if_not_exists="multipart",
    )


def test_a_mirror(op: Operator, elsewhere: Operator) -> None:
    """An object goes to another server under its own name: streamed, never as the same file."""
    assert op.location("x") == elsewhere.location("x")
    assert op.service.identity("x") != elsewhere.service.identity("x")
    op.write("x", b"here")
    with pytest.raises(Unsupported):
        op.copy("x", "x", into=elsewhere)
    op.copy("x", "x", into=elsewhere, stream="auto")
    assert elsewhere.read("x") == b"here"
    op.write("x", b"newer")
    op.rename("x", "x", into=elsewhere, stream=True)
    assert elsewhere.read("x") == b"newer"
    assert not op.exists("x")


def test_one_object_however_its_server_is_spelled(
    op: Operator, open_at: Open, server: S3Server
) -> None:
    """A slash at the end, or another object for the same bucket, make no other server."""
    op.write("x", b"data")
    with pytest.raises(IsSameFile):
        op.copy("x", "x", into=open_at(server.endpoint + "/"))
    with pytest.raises(IsSameFile):
        op.copy("x", "x", into=open_at(), stream=True)
    assert op.read("x") == b"data"


def test_a_checkpoint_of_another_server(op: Operator, elsewhere: Operator) -> None:
    """A copy is not resumed where nothing is known of it, although names and bytes agree."""
    data = content(2 * PART + 1)
    op.write("from", data)
    elsewhere.write("from", data)
    with op.copier("from", "to", concurrent=1) as copier:
        next(copier)
        checkpoint = copier.checkpoint()
        with pytest.raises(CheckpointInvalid):
            elsewhere.resume(checkpoint)
    assert not elsewhere.exists("to")


def _account(moto_server: S3Server, open_at: Open, endpoint: str, key: str) -> Operator:
    """An operator of one account; moto takes any key."""
    return open_at(
        endpoint,
        region=moto_server.region,
        access_key_id=key,
        secret_access_key="secret",
        source_pins=False,
        copy_if_not_exists="multipart",
    )


def test_two_accounts_that_see_one_bucket(moto_server: S3Server, open_at: Open) -> None:
    """Their copies stay inside the server: the target's keys read the very source."""
    one = _account(moto_server, open_at, moto_server.endpoint, "AKIAFIRST")
    two = _account(moto_server, open_at, moto_server.endpoint, "AKIASECOND")
    one.write("from", b"data", user={"k": "v"})
    for source in ("from", next(one.list("from"))):
        copier = one.copier(source, "to", into=two)
        assert copier.route == "server-side"
        copier.run()
        assert two.read("to") == b"data"


def test_two_accounts_with_buckets_of_their_own(moto_server: S3Server, open_at: Open) -> None:
    """What the target's keys see under the source's name is another object: never copied for it."""

    def other(reply: Reply) -> Reply:
        headers = {**reply.headers, "ETag": '"%s"' % ("0" * 32)}
        return replace(reply, headers=headers)

    def is_second(asked: Exchange) -> bool:
        return "AKIASECOND" in asked.headers["authorization"] and asked.target.endswith("/from")

    with FaultProxy(moto_server.endpoint) as proxy:
        one = _account(moto_server, open_at, proxy.endpoint, "AKIAFIRST")
        two = _account(moto_server, open_at, proxy.endpoint, "AKIASECOND")
        one.write("from", b"data")
        missing = Reply(404, {}, b"")
        for fault in (Fault(edit=other), Fault(reply=missing)):
            proxy.reset()
            fault.method, fault.times, fault.where = "HEAD", None, is_second
            proxy.add(fault)
            with pytest.raises(Unsupported, match="credentials"):
                one.copy("from", "to", into=two)
            copier = one.copier("from", "to", into=two, stream="auto")
            assert copier.route == "through the client"
            copier.run()
            assert proxy.count("PUT", "/to") == 1
        assert two.read("to") == b"data"
