"""A store behind gRPC: its satellite, and the relay to its local nodes, on one port."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from calque.store.embedded import EmbeddedStore
from calque.store.metainfo import serve_metainfo
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.nodes.relay import PieceRelay


@dataclass(frozen=True, slots=True)
class Served:
    """A store that clients can reach."""

    address: str
    """``grpc://host:port``."""


@contextmanager
def serve_store(store: EmbeddedStore, listen: str = "127.0.0.1:0") -> Iterator[Served]:
    """Serve a store for the length of a ``with`` block; running calls end before it closes."""
    relay = PieceRelay(store.nodes.direct(), lambda key: _authorize(store, key))
    server = serve_metainfo(store.endpoint, listen, more=(relay.handler(),))
    try:
        yield Served(f"grpc://{server.address}")
    finally:
        server.stop()


def _authorize(store: EmbeddedStore, api_key: bytes) -> None:
    """PermissionDenied unless the satellite accepts the key."""
    header = pb.RequestHeader(api_key=api_key)
    store.endpoint.get_project(pb.ProjectGetRequest(header=header))
