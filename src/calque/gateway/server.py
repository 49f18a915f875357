"""The gateway behind HTTP: a thread waits with all who are silent, others carry out requests.

The store is synchronous, so a request is a thread, which receives and sends by itself: a client
that stops reading stops the reading from the nodes. ``100 Continue`` is sent when the body is first
read, which is after the head was authorised.
"""

from __future__ import annotations

import logging
import socket
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from calque.errors import ConfigInvalid
from calque.gateway.errors import ClientGone
from calque.gateway.gateway import Gateway
from calque.gateway.http.connection import Connection
from calque.gateway.http.exchange import Handle, run_exchange
from calque.gateway.http.watch import Watch
from calque.store.metainfo.tls import ServerCertificate

THREADS = 512
"""Requests that are worked on at the same time; others wait for their turn."""
LINGER = 0.5
"""Seconds that a thread stays with its client for a next request. To change threads costs about
as much as a small request does."""
_GRACE = 10
"""Seconds that requests have to end when the server does."""

_log = logging.getLogger(__name__)


class _Workers:
    """The threads that carry out requests."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="calque-s3")
        self._changed = threading.Condition()
        self._serving: set[Connection] = set()
        self._stopping = False
        self.watch: Watch | None = None

    def take(self, connection: Connection) -> None:
        """Serve a connection that has a head."""
        self._pool.submit(self._run, connection)

    def stop(self) -> None:
        """Let requests end; after a while their clients are hung up on."""
        with self._changed:
            self._stopping = True
            for each in self._serving:
                if each.is_idle:
                    each.hang_up()
            self._changed.wait_for(lambda: not self._serving, timeout=_GRACE)
            for each in self._serving:
                each.hang_up()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _run(self, connection: Connection) -> None:
        with self._changed:
            self._serving.add(connection)
        returns = drains = False
        try:
            connection.work()
            returns, drains = self._serve(connection)
        except ClientGone:
            _log.debug("a client went away")
        except Exception:
            _log.exception("a connection failed")
        finally:
            with self._changed:
                self._serving.discard(connection)
                self._changed.notify_all()
            self._part_with(connection, returns=returns, drains=drains)

    def _serve(self, connection: Connection) -> tuple[bool, bool]:
        """Requests of one client while they follow each other; whether more may come, or bytes."""
        while run_exchange(connection, self._handle, is_last=self._stopping):
            connection.is_idle = True
            # Threads that wait for one client are not there for others: when many work, none waits.
            many = len(self._serving) > THREADS // 2
            more = not self._stopping and connection.await_head(0 if many else LINGER)
            connection.is_idle = False
            if not more:
                return not self._stopping, False
        return False, True

    def _part_with(self, connection: Connection, *, returns: bool, drains: bool) -> None:
        watch = self.watch
        try:
            if watch is not None and watch.is_alive() and (returns or drains):
                connection.drain() if drains else connection.rest()
                watch.give_back(connection)
                return
        except OSError:
            _log.debug("a client went away")
        connection.close()


@contextmanager
def serve_gateway(
    gateway: Gateway,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    tls: ServerCertificate | None = None,
) -> Iterator[str]:
    """Answer S3 for the length of a ``with`` block; gives the URL.

    Requests that run end before it closes, within some seconds.
    """
    context = None if tls is None else _tls_context(tls)
    listening = _listen(host, port)
    workers = _Workers(gateway.handle)
    watch = workers.watch = Watch(listening, context, workers.take)
    watch.start()
    try:
        scheme = "http" if tls is None else "https"
        shown = f"[{host}]" if ":" in host else host
        yield f"{scheme}://{shown}:{listening.getsockname()[1]}"
    finally:
        watch.stop()
        workers.stop()
        listening.close()


def _tls_context(tls: ServerCertificate) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(tls.certificate, tls.key)
    except (OSError, ssl.SSLError) as error:
        raise ConfigInvalid(f"the certificate of S3 cannot be used: {error}") from error
    return context


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
    except OSError as error:
        raise ConfigInvalid(f"cannot listen at {host}:{port} for S3: {error.strerror}") from error
    listening.listen(2048)
    return listening
