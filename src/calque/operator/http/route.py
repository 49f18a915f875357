"""The way to a host: directly or by a proxy, plain or by TLS.

Every step of it waits with patience that can end: an address that swallows what is sent to it is
left when a deadline or an abort says so. See ``connection`` for what is said over the way.
"""

from __future__ import annotations

import base64
import errno
import os
import select
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from calque.operator.http.connection import Connection, WireError
from calque.operator.http.waiting_time import CalledOffError, Patience


@dataclass(frozen=True, slots=True)
class Route:
    """How to reach a host: its own address or a proxy's, and the context for TLS."""

    scheme: str
    host: str
    connect_timeout: float
    tls: ssl.SSLContext | None = None
    proxy: str | None = None

    @property
    def target_prefix(self) -> str:
        """What stands before the path in the request line: the origin, for a plain proxy."""
        return f"http://{self.host}" if self.proxy and self.scheme == "http" else ""

    def open(self, patience: Patience) -> socket.socket:
        """A connected socket; OSError where the other side cannot be reached."""
        there = urlsplit(f"{self.scheme}://{self.host}")
        via = urlsplit(self.proxy) if self.proxy else there
        plain = 80 if self.proxy or self.scheme != "https" else 443
        sock = _connect(via.hostname or "", via.port or plain, patience)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.scheme != "https":
                return sock
            name = there.hostname or ""
            if self.proxy:
                shown = f"[{name}]" if ":" in name else name
                proof = _proxy_authorization(self.proxy)
                _ask_for_tunnel(sock, f"{shown}:{there.port or 443}", proof, patience)
            context = self.tls or ssl.create_default_context()
            secure = context.wrap_socket(sock, server_hostname=name, do_handshake_on_connect=False)
            sock = secure
            patience.wait(secure, secure.do_handshake)
            return secure
        except BaseException:
            sock.close()
            raise

    @property
    def proxy_headers(self) -> dict[str, str]:
        """Headers that a plain proxy wants on each request."""
        return _proxy_authorization(self.proxy) if self.proxy and self.scheme == "http" else {}


def _proxy_authorization(proxy: str) -> dict[str, str]:
    parts = urlsplit(proxy)
    if parts.username is None:
        return {}
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return {"Proxy-Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}


def _connect(name: str, port: int, patience: Patience) -> socket.socket:
    """A connection to the first address of a host that takes one."""
    failure: OSError = OSError(f"{name} has no address")
    for family, kind, protocol, _, address in socket.getaddrinfo(
        name, port, type=socket.SOCK_STREAM
    ):
        try:
            return _connect_to(socket.socket(family, kind, protocol), address, patience)
        except CalledOffError:
            raise
        except OSError as error:
            failure = error
    raise failure


def _connect_to(sock: socket.socket, address: object, patience: Patience) -> socket.socket:
    try:
        sock.setblocking(False)
        code = sock.connect_ex(address)  # type: ignore[arg-type]
        if code == errno.EINPROGRESS:
            patience.wait(sock, lambda: _wait_for_room(sock))
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))
        return sock
    except BaseException:
        sock.close()
        raise


def _wait_for_room(sock: socket.socket) -> None:
    """Until a socket can be written to: it is connected then, or has failed."""
    waiting = select.poll()
    waiting.register(sock, select.POLLOUT)
    if not waiting.poll((sock.gettimeout() or 0.0) * 1000):
        raise TimeoutError("timed out")


def _ask_for_tunnel(
    sock: socket.socket, target: str, proof: Mapping[str, str], patience: Patience
) -> None:
    """Let a proxy lead the connection to its end."""
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    lines += [f"{name}: {value}" for name, value in proof.items()]
    head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
    try:
        reply = Connection(sock).exchange(head, b"", bodiless=True, patience=patience)
    except WireError as error:
        if isinstance(error.__cause__, OSError):
            raise error.__cause__ from None  # what the system said
        raise OSError(f"the proxy answered what is no HTTP: {error}") from error
    if not 200 <= reply.status < 300:
        raise OSError(f"the proxy opens no tunnel to {target}: it answered {reply.status}")
