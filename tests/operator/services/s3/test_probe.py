"""What servers do is found out on keys of our own, and told as options that then hold."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from calque.errors import PermissionDenied
from calque.operator import Operator
from calque.operator.service import Probe
from tests.operator.services.s3.conftest import Open
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


def test_a_server_that_lets_nobody_in(open_at: Open) -> None:
    """The first refusal is told; it is no finding about conditions."""
    with pytest.raises(PermissionDenied):
        list(open_at(access_key_id="nobody").service.probe(""))  # type: ignore[attr-defined]
