"""The gateways that are measured: ``calque serve`` in a process of its own, and one in this process
whose reads from nodes are counted."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import boto3
from tests.gateway.world import gateway_world

from calque.store.embedded import EmbeddedStore
from calque.store.nodes.node import Node
from calque.store.open_project import open_project
from calque.store.project import Project

FILLED = "list/"
_REGION = "us-east-1"
_WRITERS = 16


@dataclass(frozen=True, slots=True)
class ServedGateway:
    """Where a served store is reached, over S3 and by its own client."""

    pid: int
    endpoint: str
    access_key: str = field(repr=False)
    secret_key: str = field(repr=False)
    address: str
    access: str = field(repr=False)

    def client(self) -> Any:
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            region_name=_REGION,
        )

    def project(self) -> Project:
        """The store by its own client."""
        return open_project(self.address, access=self.access)

    @property
    def service_options(self) -> dict[str, Any]:
        """What our own S3 service needs."""
        return {
            "endpoint_url": self.endpoint,
            "access_key_id": self.access_key,
            "secret_access_key": self.secret_key,
            "region": _REGION,
        }


@contextmanager
def served_gateway(folder: Path) -> Iterator[ServedGateway]:
    """``calque serve`` on a new store, as a user starts it."""
    command = [sys.executable, "-m", "calque.cli", "serve", str(folder), "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            told = _read_announcement(process)
            s3 = told["s3"]
            yield ServedGateway(
                process.pid,
                s3["endpoint"],
                s3["access_key_id"],
                s3["secret_access_key"],
                told["address"],
                told.get("access") or "",
            )
        finally:
            process.terminate()


@contextmanager
def filled_gateway(folder: Path, bucket: str, keys: int) -> Iterator[ServedGateway]:
    """The same on a store with so many small objects in one folder, written before it is served."""
    EmbeddedStore.create(folder).close()
    with open_project(folder) as project:
        access = project.access.serialize()
        project.create_bucket(bucket)

        def write(number: int) -> None:
            project.upload(bucket, f"{FILLED}{number:08}", b"x")

        with ThreadPoolExecutor(_WRITERS) as pool:  # they share commits
            list(pool.map(write, range(keys)))
    with served_gateway(folder) as served:
        yield replace(served, access=access)


def _read_announcement(process: subprocess.Popen[str]) -> dict[str, Any]:
    """One JSON document over several lines; the server goes on and prints no more for now."""
    assert process.stdout is not None
    text = ""
    for line in process.stdout:
        text += line
        if line.rstrip() == "}":
            return dict(json.loads(text))
    raise SystemExit(f"calque serve ended before it served: {text}")


@contextmanager
def count_node_reads(folder: Path) -> Iterator[tuple[Any, list[int]]]:
    """A client of a gateway in this process, and the sizes of all that is read from its nodes."""
    reads: list[int] = []
    read = Node.read

    def counted(self: Node, *args: Any, **more: Any) -> Iterator[bytes]:
        for chunk in read(self, *args, **more):
            reads.append(len(chunk))
            yield chunk

    with patch.object(Node, "read", counted), gateway_world(folder) as world:
        yield world.client(), reads
