"""One SeaweedFS and one moto a session; a root of its own for each test."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator

import pytest

from calque.operator import Operator
from calque.operator.layers import Retry, Timeout
from calque.values import MIB
from tests.operator.services.s3.server import make_bucket
from tests.servers.moto import moto
from tests.servers.proxy import FaultProxy
from tests.servers.seaweedfs import S3Server

BUCKET = "calque-tests"
PART = 5 * MIB
QUICK = (Retry(attempts=4, first=0.005, longest=0.02), Timeout(step=20, slow=60))
"""Retries as users have them, with waits as short as tests want them."""

Open = Callable[..., Operator]


@pytest.fixture(autouse=True)
def _no_settings_of_this_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """No test sees the credentials or settings of whoever runs it."""
    for name in ("AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    nothing = tmp_path_factory.getbasetemp() / "no-such-file"
    monkeypatch.setenv("AWS_CONFIG_FILE", str(nothing))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(nothing))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture(scope="session")
def server(seaweed: S3Server) -> S3Server:
    """SeaweedFS with a bucket for these tests."""
    make_bucket(seaweed, BUCKET)
    return seaweed


@pytest.fixture(scope="session")
def moto_server() -> Iterator[S3Server]:
    """moto with one bucket."""
    with moto() as running:
        make_bucket(running, BUCKET)
        yield running


@pytest.fixture
def proxy(server: S3Server) -> Iterator[FaultProxy]:
    """A proxy before SeaweedFS, without faults yet."""
    with FaultProxy(server.endpoint) as running:
        yield running


@pytest.fixture
def open_at(server: S3Server) -> Iterator[Open]:
    """Opens operators at one root of this test, on any endpoint, with any options."""
    root = f"t{uuid.uuid4().hex[:12]}"
    opened: list[Operator] = []

    def open_root(endpoint: str | None = None, **options: object) -> Operator:
        given: dict[str, object] = {
            "endpoint_url": endpoint or server.endpoint,
            "region": server.region,
            "access_key_id": server.access_key,
            "secret_access_key": server.secret_key,
            "threshold": 6 * MIB,
            "part_size": PART,
            "key_order": False,
            "layers": QUICK,
            **options,
        }
        bucket = given.pop("bucket", BUCKET)
        opened.append(Operator.from_uri(f"s3://{bucket}/{root}", **given))  # type: ignore[arg-type]
        return opened[-1]

    yield open_root
    for operator in opened:
        operator.close()


@pytest.fixture
def op(open_at: Open) -> Operator:
    """Straight to the server."""
    return open_at()


@pytest.fixture
def through(open_at: Open, proxy: FaultProxy) -> Operator:
    """The same root through the proxy."""
    return open_at(proxy.endpoint)
