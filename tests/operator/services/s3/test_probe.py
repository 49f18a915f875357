"""What servers do is found out on keys of our own, and told as options that then hold."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from calque.errors import PermissionDenied
from calque.operator import Operator
from calque.operator.service import Probe
from calque.operator.services.s3.client import Request
from tests.operator.services.s3.conftest import Open
from tests.operator.services.s3.server import client_of, make_bucket
from tests.servers.proxy import Exchange, Fault, FaultProxy, Reply
from tests.servers.seaweedfs import S3Server


def _found(op: Operator) -> Mapping[str, Probe]:
    found = {probe.name: probe for probe in op.service.probe("deep/er")}  # type: ignore[attr-defined]
    assert list(op.list()) == [], "every key of the probe is removed"
    return found


def _options(found: Mapping[str, Probe]) -> set[str]:
    return {probe.option for probe in found.values() if probe.option}


def test_seaweedfs(op: Operator) -> None:
    """It keeps every condition; its listings have no order and it collapses slashes."""
    found = _found(op)
    assert _options(found) == {"key_order=false", "unfit_in_keys=\\"}
    assert not found["keys with two slashes"].ok
    assert found["the marker part"].ok
    assert list(op.leftovers()) == []


def test_moto(moto_server: S3Server, open_at: Open) -> None:
    """It ignores conditions of copies, pins of their source and more; what it keeps is told so."""
    op = open_at(
        moto_server.endpoint,
        access_key_id=moto_server.access_key,
        secret_access_key=moto_server.secret_key,
    )
    found = _found(op)
    assert {"copy_if_not_exists=multipart", "source_pins=false"} <= _options(found)
    assert "commit_conditions=if_not_exists" in _options(found)
    assert found["order of listings"].ok
    assert found["conditions of writes"].ok


CAN = (
    "write_with_if_not_exists",
    "write_with_if_match",
    "copy_with_if_not_exists",
    "copy_with_if_match",
    "delete_with_if_match",
    "read_with_if_match",
    "copy_source_pinned",
)
CONDITIONS = ("if-match", "if-none-match", "x-amz-copy-source-if-match", "range")


def test_a_server_that_ignores_everything(op: Operator, open_at: Open, server: S3Server) -> None:
    """Every condition has its option; with those set, none is hoped for any more."""

    def blind(asked: Exchange) -> bool:
        return any(name in asked.headers for name in CONDITIONS)

    done = b"<CompleteMultipartUploadResult><ETag>1</ETag></CompleteMultipartUploadResult>"
    accepted = {
        "GET": Reply(200, {"ETag": '"1"'}, b"0123456789"),
        "PUT": Reply(200, {"ETag": '"1"'}),
        "POST": Reply(200, {}, done),
        "DELETE": Reply(204),
    }
    with FaultProxy(server.endpoint) as proxy:
        for method, reply in accepted.items():
            proxy.add(Fault(method=method, where=blind, times=None, reply=reply))
        blind_op = open_at(proxy.endpoint)
        found = _found(blind_op)
    assert {
        "write_conditions=none",
        "commit_conditions=none",
        "copy_if_not_exists=none",
        "read_if_match=false",
        "delete_if_match=false",
        "source_pins=false",
    } <= _options(found)
    assert not found["ranges"].ok
    told = dict(
        option.split("=", 1) for option in _options(found) if option != "threshold=5368709120"
    )
    can = open_at(**told).capability
    assert [name for name in CAN if getattr(can, name)] == []


REFUSED = Reply(412, {}, b"<Error><Code>PreconditionFailed</Code></Error>")


def _asks(*names: str, method: str = "PUT", copies: bool = False) -> Fault:
    """A fault for requests of this kind with one of these headers."""

    def fits(asked: Exchange) -> bool:
        return ("x-amz-copy-source" in asked.headers) == copies and any(
            name in asked.headers for name in names
        )

    return Fault(method=method, where=fits, times=None)


def test_a_server_that_refuses_and_acts_all_the_same(
    op: Operator, open_at: Open, server: S3Server
) -> None:
    """412, and the object is another, or gone: such a refusal keeps nothing."""

    def key_of(asked: Exchange) -> str:
        return asked.target.partition("?")[0].partition("/deep/er/")[2]

    def overwrite(asked: Exchange) -> None:
        op.write(f"deep/er/{key_of(asked)}", b"destroyed")

    def delete(asked: Exchange) -> None:
        op.delete(f"deep/er/{key_of(asked)}")

    faults = (
        _asks("if-match", "if-none-match"),
        _asks("if-match", "if-none-match", copies=True),
        _asks("if-match", "if-none-match", method="POST"),
        _asks("if-match", method="DELETE"),
    )
    with FaultProxy(server.endpoint) as proxy:
        for fault in faults:
            fault.hook = delete if fault.method == "DELETE" else overwrite
            fault.reply = REFUSED
            proxy.add(fault)
        found = _found(open_at(proxy.endpoint))
    assert {
        "write_conditions=none",
        "commit_conditions=none",
        "copy_if_not_exists=none",
        "delete_if_match=false",
    } <= _options(found)
    assert "all the same" in found["conditions of writes"].found


def test_a_server_that_refuses_what_holds(op: Operator, open_at: Open, server: S3Server) -> None:
    """Swift refuses every copy with if_not_exists, old Ceph every if_match: of no use either."""
    faults = (
        _asks("if-none-match", copies=True),
        _asks("if-match"),
        _asks("if-match", method="GET"),
    )
    with FaultProxy(server.endpoint) as proxy:
        for fault in faults:
            fault.reply = REFUSED
            proxy.add(fault)
        found = _found(open_at(proxy.endpoint))
    assert {
        "write_conditions=if_not_exists",
        "copy_if_not_exists=multipart",
        "read_if_match=false",
    } <= _options(found)
    assert found["conditions of commits"].ok


def test_smaller_lies(op: Operator, open_at: Open, server: S3Server) -> None:
    """Pins of parts alone, checksums, ETags and listings: each is found by itself."""
    copied = b"<CopyPartResult><ETag>1</ETag></CopyPartResult>"

    def is_other_part(asked: Exchange) -> bool:
        pin = asked.headers.get("x-amz-copy-source-if-match", "")
        return "partNumber" in asked.target and "0" * 32 in pin

    def is_wrong_crc(asked: Exchange) -> bool:
        return "x-amz-checksum-crc32" in asked.headers and "/checked" in asked.target

    def is_plain_put(asked: Exchange) -> bool:
        return asked.method == "PUT" and "partNumber" not in asked.target

    def other_etag(reply: Reply) -> Reply:
        return Reply(reply.status, {**reply.headers, "ETag": f'"{"a" * 32}"'}, reply.body)

    def forget_one(reply: Reply) -> Reply:
        start, end = reply.body.find(b"<Contents>"), reply.body.find(b"</Contents>")
        body = reply.body[:start] + reply.body[end + len(b"</Contents>") :]
        return Reply(reply.status, reply.headers, body)

    def is_order(asked: Exchange) -> bool:
        return asked.method == "GET" and "prefix=" in asked.target and "order" in asked.target

    told = {
        "pins of a copy's source": ("source_pins=false", Fault(where=is_other_part)),
        "checksums of writes": ("checksum=md5", Fault(where=is_wrong_crc)),
        "ETags": ("md5_etags=false", Fault(where=is_plain_put, edit=other_etag)),
        "listings": ("", Fault(where=is_order, edit=forget_one)),
    }
    told["pins of a copy's source"][1].reply = Reply(200, {}, copied)
    told["checksums of writes"][1].reply = Reply(200, {"ETag": '"1"'})
    for name, (option, fault) in told.items():
        fault.times = None
        with FaultProxy(server.endpoint, faults=[fault]) as proxy:
            found = _found(open_at(proxy.endpoint))
        failed = found.get(name) or found["order"]
        assert not failed.ok, name
        assert option in ("", failed.option)
        others = {each for each in _options(found) if each != option}
        assert others <= {"key_order=false", "unfit_in_keys=\\"}, name


def test_a_bucket_with_versions_keeps_none_of_ours(moto_server: S3Server, open_at: Open) -> None:
    """Neither versions nor marks of deletes."""
    bucket = "calque-versions"
    make_bucket(moto_server, bucket, versions=True)
    op = open_at(
        moto_server.endpoint,
        access_key_id=moto_server.access_key,
        secret_access_key=moto_server.secret_key,
        bucket=bucket,
    )
    assert "versions=true" in _options(_found(op))
    query = (("versions", ""),)
    left = client_of(moto_server, bucket).send("list", "", Request("GET", None, query=query)).body
    assert b"<ListVersionsResult" in left
    assert b"<Version>" not in left
    assert b"<DeleteMarker>" not in left


def test_a_server_that_lets_nobody_in(open_at: Open) -> None:
    """The first refusal is told; it is no finding about conditions."""
    with pytest.raises(PermissionDenied):
        list(open_at(access_key_id="nobody").service.probe(""))  # type: ignore[attr-defined]
