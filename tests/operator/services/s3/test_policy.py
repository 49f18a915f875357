"""Storage class, encryption and access lists: one policy on both sides of the threshold."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from calque.operator import Operator
from calque.values import MIB
from tests.operator.behaviour.case import content
from tests.operator.services.s3.conftest import Open
from tests.servers.proxy import FaultProxy
from tests.servers.seaweedfs import S3Server

BOTH_PATHS = pytest.mark.parametrize("size", [1000, 11 * MIB], ids=["one request", "parts"])


@pytest.fixture
def watched(moto_server: S3Server) -> Iterator[FaultProxy]:
    """moto, which keeps storage classes, behind a proxy that remembers what was sent."""
    with FaultProxy(moto_server.endpoint) as proxy:
        yield proxy


@pytest.fixture
def classes(watched: FaultProxy, moto_server: S3Server, open_at: Open) -> Operator:
    """An operator there."""
    return open_at(
        watched.endpoint,
        region=moto_server.region,
        access_key_id=moto_server.access_key,
        secret_access_key=moto_server.secret_key,
        source_pins=False,
    )


@BOTH_PATHS
@pytest.mark.parametrize("carried", [False, True], ids=["the target's own", "carried"])
def test_the_storage_class(classes: Operator, size: int, carried: bool) -> None:
    """The target's default, unless the source's class is asked for."""
    classes.write("from", content(size), storage_class="STANDARD_IA")
    assert classes.stat("from").storage_class == "STANDARD_IA"
    classes.copy("from", "to", carry_class=carried)
    expected = ("STANDARD_IA",) if carried else (None, "STANDARD")
    assert classes.stat("to").storage_class in expected


@BOTH_PATHS
def test_encryption_and_access_are_the_targets(
    classes: Operator, watched: FaultProxy, size: int
) -> None:
    """No request of a copy says how to encrypt or whom to let in: the bucket's rules decide."""
    classes.write("from", content(size))
    watched.reset()
    classes.copy("from", "to")
    sent = [name for each in watched.seen() for name in each.headers]
    assert "x-amz-copy-source" in sent
    assert not [
        name
        for name in sent
        if name.startswith(("x-amz-server-side-encryption", "x-amz-acl", "x-amz-grant"))
    ]
