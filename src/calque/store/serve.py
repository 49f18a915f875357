"""A store behind gRPC: its satellite, and the relay to its local nodes, on one port."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from calque.errors import ConfigInvalid
from calque.store.embedded import EmbeddedStore
from calque.store.metainfo.tls import ServerCertificate
from calque.store.relay.server import PieceRelay
from calque.store.satellite import serve_metainfo
from calque.store.upkeep.timers import TIMERS, Timer, Timers


@dataclass(frozen=True, slots=True)
class Served:
    """A store that clients can reach."""

    address: str
    """``grpc://host:port``, or ``grpcs://host:port`` with TLS."""


@contextmanager
def serve_store(
    store: EmbeddedStore,
    listen: str = "127.0.0.1:0",
    *,
    timers: Sequence[Timer] = TIMERS,
    tls: ServerCertificate | None = None,
) -> Iterator[Served]:
    """Serve a store for the length of a ``with`` block; running calls end before it closes.

    Meanwhile the store looks after itself, by ``timers``. With ``tls`` it speaks TLS alone.
    """
    relay = PieceRelay(
        store.own_nodes, store.endpoint.admit_piece, store.endpoint.open_pieces.put_piece
    )
    credentials = None if tls is None else tls.credentials()
    server = serve_metainfo(
        store.endpoint, listen, more=(relay.handler(),), credentials=credentials
    )
    scheme = "grpc" if tls is None else "grpcs"
    over = threading.Event()
    upkeep = Timers(store, over, timers)
    upkeep.start()
    try:
        with store.endpoint.delete_behind_answers():
            try:
                yield Served(f"{scheme}://{server.address}")
            finally:
                over.set()
                server.stop()
    finally:
        upkeep.join()
        upkeep.close()


@contextmanager
def serve_metrics(store: EmbeddedStore, port: int) -> Iterator[str]:
    """Answer Prometheus on the loopback for the length of a ``with`` block; gives the URL."""
    try:
        server, thread = store.endpoint.metrics.serve(port)
    except OSError as error:
        raise ConfigInvalid(f"cannot listen at 127.0.0.1:{port} for metrics") from error
    try:
        yield f"http://127.0.0.1:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
