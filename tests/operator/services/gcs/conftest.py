"""A fake with two buckets, operators on them, and a proxy between."""

from collections.abc import Iterator

import pytest

from calque.operator import Operator
from calque.operator.layers import Retry
from tests.servers.gcs_fake import GcsFake
from tests.servers.proxy import FaultProxy

SOON = (Retry(first=0.001, longest=0.01),)
"""Repeats what may be repeated, almost at once."""


@pytest.fixture
def fake() -> Iterator[GcsFake]:
    """``near`` and ``far`` are apart, so that a rewrite between them takes several calls."""
    with GcsFake() as running:
        running.make_bucket("near")
        running.make_bucket("far", location="EU")
        yield running


@pytest.fixture
def near(fake: GcsFake) -> Operator:
    """The bucket that tests copy from."""
    return Operator.from_uri("gs://near", endpoint=fake.endpoint, anonymous=True)


@pytest.fixture
def far(fake: GcsFake) -> Operator:
    """The bucket that tests copy to."""
    return Operator.from_uri("gs://far", endpoint=fake.endpoint, anonymous=True)


@pytest.fixture
def proxy(fake: GcsFake) -> Iterator[FaultProxy]:
    """Faults between client and fake."""
    with FaultProxy(fake.endpoint) as running:
        yield running


@pytest.fixture
def shaky(proxy: FaultProxy) -> Operator:
    """``near`` through the proxy, repeating what failed."""
    return Operator.from_uri("gs://near", layers=SOON, endpoint=proxy.endpoint, anonymous=True)


@pytest.fixture
def shaky_far(proxy: FaultProxy) -> Operator:
    """``far`` through the proxy, repeating what failed."""
    return Operator.from_uri("gs://far", layers=SOON, endpoint=proxy.endpoint, anonymous=True)
