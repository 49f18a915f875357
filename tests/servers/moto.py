"""moto's S3 server: for what SeaweedFS lacks (virtual hosts, regions, byte order of keys)."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.servers.process import HOST, ServerProcess, answers_http, free_ports
from tests.servers.seaweedfs import S3Server


@contextmanager
def moto() -> Iterator[S3Server]:
    """Start ``moto_server`` on a free port; it keeps everything in memory and checks no keys."""
    (port,) = free_ports(1)
    with tempfile.TemporaryDirectory(prefix="calque-moto-") as folder:
        server = ServerProcess(
            [sys.executable, "-m", "moto.server", "-H", HOST, "-p", str(port)],
            log=Path(folder) / "moto.log",
            cwd=Path(folder),
            env={**os.environ, "AWS_EC2_METADATA_DISABLED": "true"},
        )
        try:
            server.wait_until(lambda: answers_http(port))
            yield S3Server(f"http://{HOST}:{port}", "moto", "moto-secret")
        finally:
            server.stop()
