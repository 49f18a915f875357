"""One server of each cloud for the session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.operator.http.clouds import NAMES, Cloud, running
from tests.servers.proxy import FaultProxy


@pytest.fixture(scope="session", params=NAMES)
def cloud(request: pytest.FixtureRequest) -> Iterator[Cloud]:
    """Each cloud in its turn."""
    with running(request.param) as found:
        yield found


@pytest.fixture
def between(cloud: Cloud) -> Iterator[FaultProxy]:
    """A proxy before the cloud's server, without faults yet."""
    with FaultProxy(cloud.endpoint) as found:
        yield found
