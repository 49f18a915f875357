"""One HTTP exchange over kept-alive connections: what the GCS and Azure services send by.

The vendors' clients spend ten times the processor time of the exchange itself, which trees of
small objects pay for each copy. So their credentials are used and their requests are not. Retry,
timeouts and limits belong to the layers: nothing is repeated here and no redirect is followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import urllib3
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    NewConnectionError,
    ReadTimeoutError,
    SSLError,
)

from calque.errors import CalqueError, ConfigInvalid, TimedOut, Unavailable
from calque.values import KIB

CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 120.0
READ_SIZE = 256 * KIB


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: a status, headers (any case), and the whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes = b""


class Wire:
    """A pool of connections, safe for threads; ``server`` is how errors name the other side."""

    def __init__(self, server: str, *, connections: int = 64) -> None:
        self._server = server
        self._pool = urllib3.PoolManager(num_pools=4, maxsize=connections, retries=False)

    def exchange(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        timeout: float | None = None,
    ) -> Answer:
        """Send one request and read the whole answer, whatever its status."""
        try:
            reply = self._pool.urlopen(
                method,
                url,
                body=body,
                headers=headers,
                redirect=False,
                decode_content=False,
                timeout=_patience(timeout),
            )
        except HTTPError as error:
            raise self._mapped(error) from error
        return Answer(reply.status, reply.headers, reply.data)

    def open(
        self, url: str, headers: Mapping[str, str], *, timeout: float | None = None
    ) -> tuple[Answer, Iterator[bytes]]:
        """Send a GET and read its body as it comes; the body of a refusal is read at once."""
        try:
            reply = self._pool.urlopen(
                "GET",
                url,
                headers=headers,
                redirect=False,
                preload_content=False,
                decode_content=False,
                timeout=_patience(timeout),
            )
            if reply.status >= 300:
                refusal = Answer(reply.status, reply.headers, reply.data)
                reply.release_conn()
                return refusal, iter(())
        except HTTPError as error:
            raise self._mapped(error) from error
        return Answer(reply.status, reply.headers), self._pieces(reply)

    def _pieces(self, reply: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
        whole = False
        try:
            while piece := reply.read(READ_SIZE, decode_content=False):
                yield piece
            whole = True
        except HTTPError as error:
            raise self._mapped(error) from error
        finally:
            # A connection with bytes still on their way must not be used again.
            if whole:
                reply.release_conn()
            else:
                reply.close()

    def _mapped(self, error: HTTPError) -> CalqueError:
        """The one table from the transport's errors to ours; no URL is shown (it may be signed)."""
        if isinstance(error, SSLError):
            return ConfigInvalid(
                f"{self._server} does not speak the TLS that was expected",
                hint="Check http:// or https:// in the endpoint, and the machine's certificates.",
            )
        if isinstance(error, ConnectTimeoutError | NewConnectionError):
            unreached = Unavailable(
                f"cannot reach {self._server}: {_short(error)}",
                hint="Check the endpoint, the network and the proxy settings.",
            )
            unreached.surely_not_acted = True
            return unreached
        if isinstance(error, ReadTimeoutError):
            return TimedOut(f"{self._server} did not answer in time")
        return Unavailable(f"the connection to {self._server} broke: {_short(error)}")

    def close(self) -> None:
        self._pool.clear()


def _patience(timeout: float | None) -> urllib3.Timeout:
    answer = timeout if timeout is not None else ANSWER_SECONDS
    return urllib3.Timeout(connect=min(CONNECT_SECONDS, answer), read=answer)


def _short(error: HTTPError) -> str:
    cause = error.__cause__ or error.__context__
    return str(cause or type(error).__name__).split("?", 1)[0]


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds a server asks us to wait, where it says so in seconds."""
    stated = headers.get("Retry-After", "")
    return float(stated) if stated.isdigit() else None
