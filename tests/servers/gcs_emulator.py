"""gcp-storage-emulator from PyPI: lenient, and somebody else's reading of the GCS API.

It ignores preconditions, moves everything in one rewrite call and cannot take many connections, so
it checks happy paths only; :mod:`tests.servers.gcs_fake` checks the rest.
"""

from __future__ import annotations

import json
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers.process import HOST, ServerProcess, answers_http, free_ports


@contextmanager
def gcs_emulator(work: Path, *buckets: str) -> Iterator[str]:
    """Start it in memory with these buckets; gives its endpoint."""
    (port,) = free_ports(1)
    server = ServerProcess(
        [
            sys.executable,
            *("-m", "gcp_storage_emulator", "start", "--in-memory"),
            *("--host", HOST, "--port", str(port)),
        ],
        log=work / "gcs-emulator.log",
        cwd=work,
    )
    endpoint = f"http://{HOST}:{port}"
    try:
        server.wait_until(lambda: answers_http(port))
        for bucket in buckets:
            request = urllib.request.Request(
                f"{endpoint}/storage/v1/b?project=test",
                data=json.dumps({"name": bucket}).encode(),
                headers={"Content-Type": "application/json"},
            )
            urllib.request.urlopen(request, timeout=10).close()
        yield endpoint
    finally:
        server.stop()
