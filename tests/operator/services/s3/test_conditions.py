"""Servers that do not keep every condition: what is said of them is refused, never hoped for."""

from __future__ import annotations

import pytest

from calque.errors import ConditionNotMatch, Unsupported
from calque.operator.options import Streaming
from calque.testing.seaweedfs import S3Server
from calque.values import MIB
from tests.operator.behaviour.case import content
from tests.operator.services.s3.conftest import Open

SIZES = pytest.mark.parametrize("size", [1000, 11 * MIB], ids=["one request", "parts"])


@SIZES
@pytest.mark.parametrize("stream", [True, "auto"])
def test_copies_without_conditions_are_streamed(
    moto_server: S3Server, open_at: Open, size: int, stream: Streaming
) -> None:
    """Where CopyObject keeps none, the write that is allowed instead keeps them."""
    op = open_at(
        moto_server.endpoint,
        access_key_id=moto_server.access_key,
        secret_access_key=moto_server.secret_key,
        copy_if_not_exists="none",
        source_pins=False,
    )
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
