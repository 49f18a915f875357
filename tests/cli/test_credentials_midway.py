"""Credentials that end in the middle of `cp --resume`, in the clouds beside S3."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from calque.values import MIB
from tests.cli.conftest import Calque
from tests.operator.http.clouds import Cloud, running
from tests.servers.gcs_fake import GcsFake
from tests.servers.proxy import Fault, FaultProxy, Reply

SIZE = 5 * MIB + 17
STREAMED = 18 * MIB + 17
"""More than is written at once."""
ENDED = {
    "gcs": Reply(401, {}, json.dumps({"error": {"errors": [{"reason": "authError"}]}}).encode()),
    "azblob": Reply(403, {"x-ms-error-code": "AuthenticationFailed"}, b""),
}
STEP = {"gcs": "/rewriteTo/", "azblob": "comp=block&"}
"""What a step of a copy inside the service has in its address."""
SENT = {"gcs": "upload_id=", "azblob": "comp=block&"}
"""And one of a copy that passes through this machine."""


@pytest.fixture(params=["gcs", "azblob"])
def cloud(request: pytest.FixtureRequest) -> Iterator[Cloud]:
    """A cloud whose copies take several steps."""
    if request.param == "azblob":
        with running("azblob") as server:
            yield server
        return
    with GcsFake() as fake:
        fake.make_bucket("hostile")
        fake.world.near_in_one_call = False
        fake.world.rewrite_bytes = MIB
        yield Cloud("gcs", fake.endpoint, "gs://hostile", {"anonymous": True})


@pytest.fixture
def proxy(cloud: Cloud, environment: dict[str, str]) -> Iterator[FaultProxy]:
    with FaultProxy(cloud.endpoint) as between:
        if cloud.name == "azblob":
            environment |= {
                "AZURE_STORAGE_ACCOUNT": "calquetest",
                "AZURE_STORAGE_KEY": str(cloud.options["key"]),
            }
        yield between


def options_of(cloud: Cloud, proxy: FaultProxy) -> list[str]:
    """Small steps, so that credentials can end between two of them."""
    if cloud.name == "gcs":
        told = [f"endpoint={proxy.endpoint}", "anonymous=true"]
    else:
        told = [f"endpoint={proxy.endpoint}/calquetest", f"threshold={MIB}", f"part_size={MIB}"]
    return [word for each in told for word in ("-o", each)]


def end_after(cloud: Cloud, proxy: FaultProxy, what: str, passed: int) -> None:
    """Some steps pass; whatever comes then is refused, clearing up included."""
    ended = [False]

    def is_late(each: object) -> bool:
        return ended[0]

    def end(_: object) -> None:
        ended[0] = True

    proxy.add(Fault(contains=what, times=passed))
    proxy.add(Fault(contains=what, times=1, hook=end, reply=ENDED[cloud.name]))
    proxy.add(Fault(where=is_late, times=None, reply=ENDED[cloud.name]))


@pytest.mark.parametrize("streamed", [False, True], ids=["inside", "through"])
def test_the_checkpoint_is_kept_and_nothing_is_copied_twice(
    calque: Calque, cloud: Cloud, proxy: FaultProxy, folder: Path, streamed: bool
) -> None:
    """Refused midway, also for clearing up: with new credentials only the rest is copied."""
    data = os.urandom(STREAMED if streamed else SIZE)
    source = f"{cloud.place}/big"
    if streamed:
        (folder / "big").write_bytes(data)
        source = "big"
    else:
        cloud.open().write("big", data)
    made = f"made-{uuid.uuid4().hex}"
    what = (SENT if streamed else STEP)[cloud.name]
    more = ["--stream", "--chunk", "4MiB"] if streamed else []
    command = ["cp", source, f"{cloud.place}/{made}", "-c", "1", "--resume", *more]
    command += options_of(cloud, proxy)
    end_after(cloud, proxy, what, 3)
    stopped = calque(*command)
    assert stopped.returncode != 0
    assert "with new credentials go on with: calque cp" in stopped.stderr, stopped.stderr
    assert proxy.count("DELETE") == 0
    assert not cloud.open().exists(made)
    proxy.reset()
    done = calque(*command, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["resumed_from"] >= 2 * MIB
    assert report["bytes"] == len(data)
    assert proxy.count(contains=what) <= 5
    with cloud.open() as op:
        assert op.read(made) == data
        assert list(op.leftovers(made)) == []
