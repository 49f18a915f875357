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
from functools import partial
from itertools import islice

from calque.errors import ConfigInvalid
from calque.gateway.errors import ClientGone
from calque.gateway.gateway import Gateway
from calque.gateway.http.connection import Connection
from calque.gateway.http.exchange import Handle, refuse_for_room, run_exchange
from calque.gateway.http.watch import HEADS_TOGETHER, Watch
from calque.store.metainfo.tls import Renewed, ServerCertificate

THREADS = 512
"""Requests that are worked on at the same time; others wait for their turn."""
LINGER = 0.5
"""Seconds that a thread stays with its client for a next request. To change threads costs about
as much as a small request does."""
_GRACE = 10
"""Seconds that requests have to end when the server does."""
_LAST_WORDS = 1.0
"""Seconds that a client has then to read its answer, where it goes on sending."""

_log = logging.getLogger(__name__)


class _Workers:
    """The threads that carry out requests."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="calque-s3")
        self._changed = threading.Condition()
        self._serving: set[Connection] = set()
        self._waiting = 0
        """Bytes of requests that have no thread yet."""
        self._queued: set[Connection] = set()
        """Requests that have no thread yet."""
        self._stopping = False
        self._is_over = False
        """Whether nobody has any time left."""
        self.watch: Watch | None = None

    def take(self, connection: Connection) -> None:
        """Serve a connection that has a head, as soon as a thread is free."""
        size = len(connection.held)
        with self._changed:
            # One always may wait: a head is shorter than all the room there is.
            has_room = not self._waiting or self._waiting + size <= HEADS_TOGETHER
            self._waiting += size if has_room else 0
            if has_room:
                self._queued.add(connection)
        if has_room:
            self._pool.submit(self._run, connection, size)
            self.make_room()
        else:
            refuse_for_room(connection)

    def make_room(self) -> None:
        """Hang up on clients that hardly move, one for each request without a thread: who has a
        link or a key, and reads byte by byte, must not keep all threads from everybody else.

        Asked again while requests wait: nobody else may come, and clients need time to be known as
        slow. Unless no thread is free, nobody minds them.
        """
        if not self._queued:
            return
        with self._changed:
            if len(self._serving) < THREADS:
                return
            leaving = sum(each.was_hung_up for each in self._serving)
            slow = (each for each in self._serving if each.dawdles())
            for each in islice(slow, max(0, len(self._queued) - leaving)):
                _log.warning("a client that hardly moved made room for another")
                each.hang_up()

    def stop(self) -> None:
        """Let requests end; after a while their clients are hung up on."""
        with self._changed:
            self._stopping = True
            for each in self._serving:
                if each.is_idle:
                    each.hang_up()
            self._changed.wait_for(lambda: not self._serving, timeout=_GRACE)
            self._is_over = True
            for each in self._serving:
                each.hang_up()
        self._pool.shutdown(wait=True, cancel_futures=True)
        for each in self._queued:
            each.close()

    def _run(self, connection: Connection, size: int) -> None:
        with self._changed:
            self._waiting -= size
            self._queued.discard(connection)
            self._serving.add(connection)
            if self._is_over:  # one before it made room just now
                connection.hang_up()
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
        connection.begin_request()
        while run_exchange(connection, self._handle, lambda: self._stopping):
            connection.is_idle = True
            # Threads that wait for one client are not there for others: when many work, none waits.
            many = len(self._serving) > THREADS // 2
            more = not self._stopping and connection.await_head(0 if many else LINGER)
            connection.is_idle = False
            if not more:
                return not self._stopping, self._stopping
            connection.begin_request()
        return False, True

    def _part_with(self, connection: Connection, *, returns: bool, drains: bool) -> None:
        watch = self.watch
        try:
            if watch is not None and watch.is_alive() and (returns or drains):
                connection.drain() if drains else connection.rest()
                watch.give_back(connection)
                return
            if drains:
                connection.drain_within(_LAST_WORDS)
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
    context = None if tls is None else Renewed(tls, partial(_tls_context, tls)).current
    listening = _listen(host, port)
    workers = _Workers(gateway.handle)
    watch = workers.watch = Watch(listening, context, workers.take, workers.make_room)
    watch.start()
    try:
        scheme = "http" if tls is None else "https"
        shown = f"[{host}]" if ":" in host else host
        yield f"{scheme}://{shown}:{listening.getsockname()[1]}"
    finally:
        watch.stop()
        # Before requests under way have ended: who comes now is refused, and does not wait in vain.
        listening.close()
        workers.stop()


def _tls_context(tls: ServerCertificate) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # Each greeting costs a signature, and a connection has one: not every OpenSSL refuses more.
    context.options |= ssl.OP_NO_RENEGOTIATION
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
