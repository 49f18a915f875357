"""The way to a host: directly or by a proxy, plain or by TLS.

``http.client`` opens the connection; see ``connection`` for what is said over it.
"""

from __future__ import annotations

import base64
import http.client
import socket
import ssl
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit


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

    def open(self, within: float | None = None) -> socket.socket:
        """A connected socket; OSError where the other side cannot be reached."""
        opened = self._prepare()
        if within is not None:
            opened.timeout = min(within, self.connect_timeout)
        opened.connect()
        sock = opened.sock
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def _prepare(self) -> http.client.HTTPConnection:
        parts = urlsplit(f"{self.scheme}://{self.host}")
        via = urlsplit(self.proxy) if self.proxy else parts
        name, port = via.hostname or "", via.port
        if self.scheme != "https":
            return http.client.HTTPConnection(name, port or 80, timeout=self.connect_timeout)
        default = 80 if self.proxy else 443
        secure = http.client.HTTPSConnection(
            name, port or default, timeout=self.connect_timeout, context=self.tls
        )
        if self.proxy:
            secure.set_tunnel(
                parts.hostname or "", parts.port or 443, _proxy_authorization(self.proxy)
            )
        return secure

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
