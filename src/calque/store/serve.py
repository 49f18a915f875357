"""A store behind gRPC: its satellite, and the relay to its local nodes, on one port."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from calque.errors import CalqueError, ConfigInvalid
from calque.store.embedded import EmbeddedStore
from calque.store.metainfo.tls import ServerCertificate
from calque.store.relay.server import PieceRelay
from calque.store.satellite import serve_metainfo
from calque.store.upkeep.expire import sweep_store

SWEEP_EVERY = 3600.0
"""Seconds between two sweeps."""

SWEEPS_A_DAY = 24

_log = logging.getLogger(__name__)


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
    sweep_every: float = SWEEP_EVERY,
    tls: ServerCertificate | None = None,
) -> Iterator[Served]:
    """Serve a store for the length of a ``with`` block; running calls end before it closes.

    What expires or is abandoned is swept now and then. With ``tls`` it speaks TLS alone.
    """
    relay = PieceRelay(
        store.nodes.direct(), store.endpoint.admit_piece, store.endpoint.open_pieces.put_piece
    )
    credentials = None if tls is None else tls.credentials()
    server = serve_metainfo(
        store.endpoint, listen, more=(relay.handler(),), credentials=credentials
    )
    scheme = "grpc" if tls is None else "grpcs"
    over = threading.Event()
    sweeper = threading.Thread(target=_sweep, args=(store, over, sweep_every), daemon=True)
    sweeper.start()
    try:
        yield Served(f"{scheme}://{server.address}")
    finally:
        over.set()
        server.stop()
        sweeper.join()


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


def _sweep(store: EmbeddedStore, over: threading.Event, every: float) -> None:
    for number in itertools.count(1):
        if over.wait(every):
            return
        try:
            sweep_store(store, over.is_set)
        except CalqueError as error:  # the next time may be better
            _log.warning("a sweep failed: %s", error)
        except Exception:  # a mistake of ours must not end all sweeps to come
            _log.exception("a sweep failed")
