"""The three clouds side by side: each over a real server or the strict fake, and over any other."""

from __future__ import annotations

import socket
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from calque.errors import Unavailable
from calque.operator import Operator
from calque.operator.layers import Layer, Retry, Timeout
from tests.operator.services.s3.server import make_bucket
from tests.servers.gcs_fake import GcsFake
from tests.servers.shared import shared_azurite, shared_seaweedfs

NAMES = ("s3", "gcs", "azblob")
SOON = (Retry(attempts=3, first=0.001, longest=0.01), Timeout(step=20, slow=60))
KEYS = {"access_key_id": "calque-test", "secret_access_key": "calque-test-secret"}


@dataclass(frozen=True)
class Cloud:
    """A running server of one cloud; ``open`` an operator on it, or on a proxy before it."""

    name: str
    endpoint: str
    place: str
    options: dict[str, object]

    def open(
        self, endpoint: str | None = None, *, layers: tuple[Layer, ...] = SOON, **more: object
    ) -> Operator:
        given = {**self.options, **more}
        key = "endpoint_url" if self.name == "s3" else "endpoint"
        tail = "/calquetest" if self.name == "azblob" else ""
        given[key] = (endpoint or self.endpoint) + tail
        return Operator.from_uri(self.place, layers=layers, **given)


@contextmanager
def running(name: str) -> Iterator[Cloud]:
    """A server of a cloud with one bucket or container."""
    if name == "s3":
        server = shared_seaweedfs()
        make_bucket(server, "hostile")
        options: dict[str, object] = {**KEYS, "region": server.region, "key_order": False}
        yield Cloud(name, server.endpoint, f"s3://hostile/{uuid.uuid4().hex[:8]}", options)
    elif name == "gcs":
        with GcsFake() as fake:
            fake.make_bucket("hostile")
            yield Cloud(name, fake.endpoint, "gs://hostile", {"anonymous": True})
    else:
        try:
            azurite = shared_azurite()
        except Unavailable as error:
            pytest.skip(f"Azurite cannot be had: {error}")
        azurite.make_container("calquetest", "hostile")
        options = {"account": "calquetest", "key": azurite.keys["calquetest"]}
        yield Cloud(name, f"http://127.0.0.1:{azurite.port}", "az://hostile", options)


def nowhere(name: str) -> Cloud:
    """A cloud without a server: to be opened on an endpoint that a test makes up."""
    options: dict[str, dict[str, object]] = {
        "s3": {**KEYS, "region": "us-east-1"},
        "gcs": {"anonymous": True},
        "azblob": {"account": "calquetest", "anonymous": True},
    }
    places = {"s3": "s3://hostile", "gcs": "gs://hostile", "azblob": "az://hostile"}
    return Cloud(name, "http://127.0.0.1:9", places[name], options[name])


Answerer = Callable[[str], bytes | Iterable[bytes]]


@contextmanager
def answering(answer: Answerer) -> Iterator[str]:
    """A server that sends, raw, whatever ``answer`` makes of the head of each request.

    Each connection is served by a thread of its own and closed after its answer.
    """
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)

    def serve(connection: socket.socket) -> None:
        with connection:
            try:
                head = b""
                while b"\r\n\r\n" not in head:
                    got = connection.recv(65536)
                    if not got:
                        return
                    head += got
                reply = answer(head.decode("latin-1"))
                for piece in (reply,) if isinstance(reply, bytes) else reply:
                    connection.sendall(piece)
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass
            except OSError:
                return

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
