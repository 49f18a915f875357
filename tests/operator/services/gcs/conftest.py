"""A fake with two buckets, operators on them, and a proxy between."""

from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest

from calque.errors import CalqueError
from calque.operator import Operator
from calque.operator.layers.chain import Call
from calque.testing.gcs_fake import GcsFake
from calque.testing.proxy import FaultProxy

T = TypeVar("T")


def again(call: Call, proceed: Callable[[Call], T]) -> T:
    """A layer that repeats what may be repeated, four times at most and at once."""
    for _ in range(4):
        try:
            return proceed(call)
        except CalqueError as error:
            if not error.retryable:
                raise
    return proceed(call)


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
    operator = Operator.from_uri("gs://near", endpoint=proxy.endpoint, anonymous=True)
    return operator.layer(again)


@pytest.fixture
def shaky_far(proxy: FaultProxy) -> Operator:
    """``far`` through the proxy, repeating what failed."""
    operator = Operator.from_uri("gs://far", endpoint=proxy.endpoint, anonymous=True)
    return operator.layer(again)
