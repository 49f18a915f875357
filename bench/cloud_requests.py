"""Processor time of the client per request, GCS and Azure: ours against the vendors' clients.

Servers run in processes of their own, so that only the client is counted. Both sides send the same
requests on kept connections, in turn.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from azure.core import MatchConditions
from azure.storage.blob import BlobServiceClient, generate_blob_sas
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage
from tests.servers.azurite import Azurite

from bench.table import Row, asked_scale, show
from calque.errors import Unavailable
from calque.operator import Operator

ROUNDS = 5
FAKE = """
import sys
from tests.servers.gcs_fake import GcsFake
with GcsFake() as fake:
    fake.make_bucket("bench")
    print(fake.endpoint, flush=True)
    sys.stdin.read()
"""


def main() -> None:
    """Print the table."""
    show("cloud requests", run(asked_scale()))


def run(scale: float) -> list[Row]:
    """The rows; ``scale`` multiplies the number of requests."""
    count = max(20, int(100 * scale))
    rows = gcs_rows(count)
    try:
        with tempfile.TemporaryDirectory() as work, Azurite(Path(work)) as azurite:
            rows += azure_rows(azurite, count)
    except Unavailable as error:
        print(f"Azure is left out: {error.message}", file=sys.stderr)
    return rows


def row(
    what: str, count: int, ours: Callable[[], Any], theirs: Callable[[], Any], peer: str
) -> Row:
    """One comparison, by the median of several rounds in turn."""
    spent: dict[Callable[[], Any], list[float]] = {ours: [], theirs: []}
    for work in spent:
        work()
    for _ in range(ROUNDS):
        for work, times in spent.items():
            started = time.process_time()
            for _ in range(count):
                work()
            times.append((time.process_time() - started) / count * 1000)
    own, other = (statistics.median(times) for times in spent.values())
    figures = f"{own:.2f} ms", f"{peer} {other:.2f} ms"
    return Row(what, *figures, own / other, "at most 0.25", own / other <= 0.25)


@contextmanager
def fake_server() -> Iterator[str]:
    """The strict fake in a process of its own."""
    with subprocess.Popen(
        [sys.executable, "-c", FAKE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.stdin.close()


def gcs_rows(count: int) -> list[Row]:
    """Metadata of an object, and a small copy pinned to its source."""
    with fake_server() as endpoint:
        op = Operator.from_uri("gs://bench", endpoint=endpoint, anonymous=True)
        op.write("from", b"x")
        client = storage.Client(
            project="p",
            credentials=AnonymousCredentials(),
            client_options={"api_endpoint": endpoint},
        )
        bucket = client.bucket("bench")

        def their_copy() -> None:
            source = bucket.get_blob("from")
            bucket.blob("theirs").rewrite(source, if_source_generation_match=source.generation)

        peer = "google-cloud-storage"
        return [
            row(
                "GCS stat, client CPU",
                count,
                lambda: op.stat("from"),
                bucket.blob("from").reload,
                peer,
            ),
            row("GCS copy, client CPU", count, lambda: op.copy("from", "ours"), their_copy, peer),
        ]


def azure_rows(azurite: Azurite, count: int) -> list[Row]:
    """Properties of a blob, and a small copy: look at the source, copy, look at the target."""
    account, key, container = "calquetest", azurite.keys["calquetest"], "bench"
    azurite.make_container(account, container)
    endpoint = azurite.endpoint(account)
    op = Operator.from_uri(f"az://{container}", account=account, key=key, endpoint=endpoint)
    op.write("from", b"x")
    service = BlobServiceClient(
        endpoint, credential={"account_name": account, "account_key": key}, retry_total=0
    )
    source = service.get_blob_client(container, "from")

    def their_copy() -> None:
        found = source.get_blob_properties()
        expiry = datetime.now(UTC) + timedelta(minutes=30)
        sas = generate_blob_sas(
            account, container, "from", account_key=key, permission="r", expiry=expiry
        )
        target = service.get_blob_client(container, "theirs")
        target.start_copy_from_url(
            f"{source.url}?{sas}",
            requires_sync=True,
            source_etag=found.etag,
            source_match_condition=MatchConditions.IfNotModified,
        )
        target.get_blob_properties()

    peer = "azure-storage-blob"
    return [
        row(
            "Azure stat, client CPU",
            count,
            lambda: op.stat("from"),
            source.get_blob_properties,
            peer,
        ),
        row("Azure copy, client CPU", count, lambda: op.copy("from", "ours"), their_copy, peer),
    ]


if __name__ == "__main__":
    main()
