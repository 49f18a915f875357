"""One HTTP exchange with one server: what the GCS and Azure services send by.

The vendors' clients spend five times the processor time of the exchange itself, which trees of
small objects pay for each copy. So their credentials are used and their requests are not. Retry,
timeouts and limits belong to the layers: only a read that met a connection which the server had
just closed goes out again by itself, and no redirect is followed.
"""

from __future__ import annotations

import ssl
import time
import urllib.request
import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from itertools import islice
from math import isfinite
from urllib.parse import urlsplit

from calque._version import __version__
from calque.errors import (
    Aborted,
    CalqueError,
    ConfigInvalid,
    InvalidInput,
    TimedOut,
    Unavailable,
    Unexpected,
)
from calque.operator.http.connection import Connection, Reply, WireError
from calque.operator.http.pool import Pool
from calque.operator.http.route import Route
from calque.operator.layers.chain import Call
from calque.values import KIB

CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 120.0
READ_SIZE = 256 * KIB
CONNECTIONS = 128
_REFUSAL_PIECES = 4
_AGENT = f"calque/{__version__}"
_UNBOUND = Call("exchange", "")
"""No layer has set a time."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: a status, headers by lower-case name, and the whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""


class Wire:
    """Kept-alive connections to one server (``http://host:port``), safe for threads and forks."""

    def __init__(
        self, server: str, *, ca_bundle: str | None = None, connections: int = CONNECTIONS
    ) -> None:
        parts = urlsplit(server)
        self._server = f"{parts.scheme}://{parts.netloc}"
        self._host = parts.netloc
        secure = parts.scheme == "https"
        route = Route(
            parts.scheme,
            parts.netloc,
            CONNECT_SECONDS,
            _tls(ca_bundle) if secure else None,
            _proxy_for(parts.scheme, parts.hostname or ""),
        )
        self._pool = Pool(route, connections, patience=ANSWER_SECONDS)
        # Operators are seldom closed by hand; their idle connections end with them.
        weakref.finalize(self, self._pool.close)

    def exchange(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        call: Call = _UNBOUND,
    ) -> Answer:
        """Send one request and read the whole answer, whatever its status."""
        connection, reply = self._send(method, target, headers, body or b"", call)
        try:
            return Answer(reply.status, reply.headers, reply.read())
        except WireError as error:
            raise self._error_of(error) from error
        finally:
            self._pool.release(connection)

    def open(
        self, target: str, headers: Mapping[str, str], *, call: Call = _UNBOUND
    ) -> tuple[Answer, Body]:
        """Send a GET and read its body as it comes; the body of a refusal is read at once."""
        connection, reply = self._send("GET", target, headers, b"", call)
        body = Body(self, connection, reply)
        if reply.status >= 300:
            # Read no further than this: a broken server may never end its refusal.
            refusal = b"".join(islice(body, _REFUSAL_PIECES))
            body.close()
            return Answer(reply.status, reply.headers, refusal), body
        return Answer(reply.status, reply.headers), body

    def _send(
        self,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes,
        call: Call,
    ) -> tuple[Connection, Reply]:
        try:
            return self._pool.exchange(
                self._head(method, target, headers, body),
                body,
                bodiless=method == "HEAD",
                timeout=call.timeout if call.timeout is not None else ANSWER_SECONDS,
                # A write that is sent again in silence could find its own result and take it for
                # a conflict: only the retry layer, which knows, repeats writes.
                repeatable=method in ("GET", "HEAD"),
                within=call.within,
                stopped=call.stopped,
            )
        except WireError as error:
            raise self._error_of(error) from error

    def _head(self, method: str, target: str, headers: Mapping[str, str], body: bytes) -> bytes:
        route = self._pool.route
        lines = [f"{method} {route.target_prefix}{target} HTTP/1.1", f"Host: {self._host}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        lines += [f"{name}: {value}" for name, value in route.proxy_headers.items()]
        lines.append(f"User-Agent: {_AGENT}")
        if body or method in ("PUT", "POST", "DELETE"):
            lines.append(f"Content-Length: {len(body)}")
        text = "\r\n".join(lines)
        breaks = len(lines) - 1
        if text.count("\n") != breaks or text.count("\r") != breaks or "\0" in text:
            raise InvalidInput("a header cannot hold a line break: look at metadata and options")
        return encode_head(text)

    def _error_of(self, error: WireError) -> CalqueError:
        """The one table from the transport's errors to ours; no URL is shown (it may be signed)."""
        if isinstance(error.__cause__, ssl.SSLCertVerificationError):
            return ConfigInvalid(
                f"the certificate of {self._server} cannot be trusted: {error}",
                hint="Check the endpoint; ca_bundle or SSL_CERT_FILE names what to trust.",
            )
        if error.stopped:
            return Aborted(f"the request to {self._server} was stopped")
        if error.nonsense:
            return Unexpected(f"{self._server} answered what is no HTTP: {error}")
        if error.timed_out:
            return TimedOut(f"{self._server} did not answer in time")
        if not error.sent:
            unreached = Unavailable(
                f"cannot reach {self._server}: {error}",
                hint="Check the endpoint, the network and the proxy settings.",
            )
            unreached.surely_not_acted = True
            return unreached
        return Unavailable(f"the connection to {self._server} broke: {error}")

    def close(self) -> None:
        self._pool.close()


class Body(Iterator[bytes]):
    """The body of an answer as it comes; its connection goes back when it is read or dropped."""

    def __init__(self, wire: Wire, connection: Connection, reply: Reply) -> None:
        self._wire = wire
        self._connection: Connection | None = connection
        self._pieces = reply.pieces(READ_SIZE)

    def __next__(self) -> bytes:
        try:
            return next(self._pieces)
        except StopIteration:
            self.close()
            raise
        except WireError as error:
            self.close()
            raise self._wire._error_of(error) from error

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            self._wire._pool.release(connection)

    def __del__(self) -> None:
        self.close()


def encode_head(text: str) -> bytes:
    """The head of a request; bytes that came as no UTF-8 (an ETag's) go back as they came."""
    try:
        return f"{text}\r\n\r\n".encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise InvalidInput(
            "a header cannot hold half a character: look at names, metadata and options"
        ) from error


def _tls(ca_bundle: str | None) -> ssl.SSLContext:
    """The system's authorities (or those of SSL_CERT_FILE), or the ones in a file alone."""
    try:
        return ssl.create_default_context(cafile=ca_bundle)
    except (OSError, ssl.SSLError) as error:
        raise ConfigInvalid(
            f"the certificates in {ca_bundle} cannot be read",
            hint="ca_bundle names a PEM file of the authorities to trust.",
        ) from error


def _proxy_for(scheme: str, host: str) -> str | None:
    """The proxy that the environment names for a host."""
    if urllib.request.proxy_bypass(host):
        return None
    return urllib.request.getproxies().get(scheme)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds a server asks us to wait, as a number or until a date; None for nonsense."""
    stated = headers.get("retry-after", "")
    try:
        seconds = float(stated)
    except ValueError:
        pass
    else:
        return max(0.0, seconds) if isfinite(seconds) else None
    try:
        return max(0.0, parsedate_to_datetime(stated).timestamp() - time.time())
    except ValueError:
        return None
