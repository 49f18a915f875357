"""A fault-injecting HTTP proxy between a client and any server.

It forwards each exchange unchanged (the Host header too, so signatures stay valid), unless a
:class:`Fault` says otherwise. Faults are tried in the order they were added; the first that matches
and has turns left is used. Everything that passed is kept in ``log``::

    with FaultProxy(server.endpoint) as proxy:
        proxy.add(Fault(method="PUT", contains="partNumber=2", times=2, reply=Reply(503)))
        ...                                    # the client talks to proxy.endpoint
        assert proxy.count(contains="partNumber=2") == 3
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

HOST = "127.0.0.1"
_HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length"})


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, the server's or one made up for it."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def without(self, *names: str) -> Reply:
        """The same answer with some headers left out."""
        drop = {name.lower() for name in names}
        kept = {name: value for name, value in self.headers.items() if name.lower() not in drop}
        return replace(self, headers=kept)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request as it came in, and how many were in flight with it (itself included)."""

    number: int
    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    in_flight: int
    at: float


@dataclass(slots=True)
class Fault:
    """What goes wrong, for which requests, and how often (``times`` None: always).

    In this order: skip the first ``after`` matches; call ``hook`` with the exchange; wait
    ``delay`` seconds; forward, unless ``reply`` or ``drop`` stand in for the server (``acted``
    True forwards all the same, so the server acts and its answer is lost); ``edit`` the answer;
    send it, ``trickle`` white space before it for so many seconds, or ``cut`` its body after so
    many bytes and close the connection.
    """

    method: str | None = None
    contains: str | None = None
    header: str | None = None
    where: Callable[[Exchange], bool] | None = None
    times: int | None = 1
    after: int = 0
    hook: Callable[[Exchange], None] | None = None
    delay: float = 0.0
    reply: Reply | None = None
    drop: bool = False
    acted: bool = False
    edit: Callable[[Reply], Reply] | None = None
    cut: int | None = None
    trickle: float = 0.0
    hits: int = 0

    def matches(self, exchange: Exchange) -> bool:
        """Whether this fault is meant for the exchange, turns aside."""
        if self.method is not None and self.method != exchange.method:
            return False
        if self.contains is not None and self.contains not in exchange.target:
            return False
        if self.header is not None and self.header.lower() not in exchange.headers:
            return False
        return self.where is None or self.where(exchange)

    def take(self, exchange: Exchange) -> bool:
        """Use up a turn, if it matches and one is left."""
        if not self.matches(exchange):
            return False
        if self.after > 0:
            self.after -= 1
            return False
        if self.times is not None and self.hits >= self.times:
            return False
        self.hits += 1
        return True


class FaultProxy:
    """A proxy in front of ``upstream`` (``http://host:port``); use it as a context manager.

    With ``tls`` (a server's context) it speaks https to its clients.
    """

    def __init__(
        self,
        upstream: str,
        *,
        faults: list[Fault] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        parts = urlsplit(upstream)
        self.upstream = (parts.hostname or HOST, parts.port or 80)
        self.log: list[Exchange] = []
        self.max_in_flight = 0
        self._faults = list(faults or [])
        self._lock = threading.Lock()
        self._in_flight = 0
        self._server = _Server((HOST, 0), _handler_for(self))
        self._scheme = "http" if tls is None else "https"
        if tls is not None:
            # The handshake belongs to the connection's own thread, not to the one that accepts.
            self._server.socket = tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> FaultProxy:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def endpoint(self) -> str:
        return f"{self._scheme}://{HOST}:{self._server.server_address[1]}"

    def add(self, *faults: Fault) -> None:
        """Put faults behind those already waiting."""
        with self._lock:
            self._faults.extend(faults)

    def reset(self) -> None:
        """Forget every fault and everything seen."""
        with self._lock:
            self._faults.clear()
            self.log.clear()
            self.max_in_flight = self._in_flight

    def seen(self, method: str | None = None, contains: str | None = None) -> list[Exchange]:
        """The requests that came in, in order, by method and a piece of their target."""
        wanted = Fault(method=method, contains=contains)
        with self._lock:
            return [exchange for exchange in self.log if wanted.matches(exchange)]

    def count(self, method: str | None = None, contains: str | None = None) -> int:
        return len(self.seen(method, contains))

    @contextlib.contextmanager
    def exchange(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> Iterator[tuple[Exchange, Fault | None]]:
        """Record a request while it is in flight, with the fault that is its lot."""
        with self._lock:
            self._in_flight += 1
            self.max_in_flight = max(self.max_in_flight, self._in_flight)
            number = len(self.log) + 1
            now = time.monotonic()
            seen = Exchange(number, method, target, headers, body, self._in_flight, now)
            self.log.append(seen)
            fault = next((fault for fault in self._faults if fault.take(seen)), None)
        try:
            yield seen, fault
        finally:
            with self._lock:
                self._in_flight -= 1


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is nothing to print about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    proxy: FaultProxy

    def setup(self) -> None:
        super().setup()
        self._upstream: http.client.HTTPConnection | None = None

    def finish(self) -> None:
        if self._upstream is not None:
            self._upstream.close()
        with contextlib.suppress(OSError):
            super().finish()

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet: the proxy keeps its own log."""

    def pass_on(self) -> None:
        target = self.requestline.split(" ")[1]
        body = self._body()
        headers = {name.lower(): value for name, value in self.headers.items()}
        with self.proxy.exchange(self.command, target, headers, body) as (seen, fault):
            reply = self._answer(seen, fault or Fault())
        if reply is None:
            self._hang_up()
            return
        self._send(reply, fault or Fault())

    def _answer(self, seen: Exchange, fault: Fault) -> Reply | None:
        if fault.hook is not None:
            fault.hook(seen)
        if fault.delay:
            time.sleep(fault.delay)
        if fault.acted or not (fault.drop or fault.reply):
            reply = self._forward(seen)
        if fault.drop:
            return None
        if fault.reply is not None:
            return fault.reply
        return reply if fault.edit is None or reply is None else fault.edit(reply)

    def _forward(self, seen: Exchange) -> Reply | None:
        if self._upstream is None:
            self._upstream = http.client.HTTPConnection(*self.proxy.upstream, timeout=300)
        try:
            return self._ask(self._upstream, seen)
        except (OSError, http.client.HTTPException):
            self._upstream.close()
            self._upstream = None
            return None

    def _ask(self, upstream: http.client.HTTPConnection, seen: Exchange) -> Reply:
        upstream.putrequest(seen.method, seen.target, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in ("transfer-encoding", "expect", "connection"):
                upstream.putheader(name, value)
        if "content-length" not in seen.headers and seen.body:
            upstream.putheader("Content-Length", str(len(seen.body)))
        upstream.endheaders(seen.body or None)
        response = upstream.getresponse()
        return Reply(response.status, dict(response.getheaders()), response.read())

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            return self._chunked_body()
        return self.rfile.read(int(self.headers.get("content-length") or 0))

    def _chunked_body(self) -> bytes:
        pieces = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _send(self, reply: Reply, fault: Fault) -> None:
        head = [f"HTTP/1.1 {reply.status} {http.client.responses.get(reply.status, '')}"]
        named = {name.lower() for name in reply.headers}
        for name, value in reply.headers.items():
            if name.lower() not in _HOP_BY_HOP:
                head.append(f"{name}: {value}")
        if self.command == "HEAD" and "content-length" in named:
            length = next(v for n, v in reply.headers.items() if n.lower() == "content-length")
            head.append(f"Content-Length: {length}")
        elif fault.trickle:
            head.append("Transfer-Encoding: chunked")
        elif reply.status not in (204, 304):
            head.append(f"Content-Length: {len(reply.body)}")
        self.wfile.write(("\r\n".join(head) + "\r\n\r\n").encode("latin-1"))
        if self.command == "HEAD":
            return
        if fault.cut is not None:
            self.wfile.write(reply.body[: fault.cut])
            self._hang_up()
        elif fault.trickle:
            self._trickle(reply.body, fault.trickle)
        else:
            self.wfile.write(reply.body)

    def _trickle(self, body: bytes, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.wfile.write(b"1\r\n \r\n")
            time.sleep(0.05)
        self.wfile.write(f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n")

    def _hang_up(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)


def _handler_for(proxy: FaultProxy) -> type[_Handler]:
    methods = ("GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "OPTIONS")
    verbs = {f"do_{method}": _Handler.pass_on for method in methods}
    return type("_BoundHandler", (_Handler,), {"proxy": proxy, **verbs})
