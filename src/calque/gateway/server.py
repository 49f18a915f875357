"""The gateway behind HTTP: uvicorn speaks it, a thread carries out each request.

The store is synchronous, so a request is a thread. Blocks of 256 KiB cross between the loop and
the thread, one ahead of the one that is worked on, in both directions: a client that stops reading
stops the reading from the nodes. ``100 Continue`` is sent when the body is first read, which is
after the head was authorised.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import uvicorn

from calque.errors import CalqueError, ConfigInvalid, Unavailable
from calque.gateway.errors import ClientGone, S3Error
from calque.gateway.gateway import Gateway
from calque.gateway.request import Headers, Request, Response
from calque.store.metainfo.tls import ServerCertificate

BLOCK = 256 * 1024
THREADS = 512
"""Requests that are worked on at the same time; others wait for their turn."""
PATIENCE = 120.0
"""Seconds that a client may be silent in the middle of a body, or not read its answer."""
_KEEP_ALIVE = 75
_GRACE = 10

_log = logging.getLogger(__name__)

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]


class GatewayApp:
    """The gateway as an ASGI application."""

    def __init__(self, gateway: Gateway, threads: ThreadPoolExecutor) -> None:
        self._gateway = gateway
        self._threads = threads

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        loop = asyncio.get_running_loop()
        exchange = _Exchange(loop, scope, receive, send)
        await loop.run_in_executor(self._threads, exchange.run, self._gateway)


class _Exchange:
    """One request and its answer, in a thread of its own."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        scope: dict[str, Any],
        receive: Receive,
        send: Send,
    ) -> None:
        self._loop = loop
        self._scope = scope
        self._receive = receive
        self._send_message = send
        self._body = _Body(loop, receive)
        self._is_gone = False

    def run(self, gateway: Gateway) -> None:
        try:
            response = gateway.handle(self._request())
            self._send(response)
        except ClientGone:
            _log.debug("a client went away")
        finally:
            self._body.close()

    def _request(self) -> Request:
        scope = self._scope
        return Request(
            scope["method"],
            scope["raw_path"].decode("latin-1"),
            scope["query_string"].decode("latin-1"),
            Headers((n.decode("latin-1"), v.decode("latin-1")) for n, v in scope["headers"]),
            self._body,
            secure=scope["scheme"] == "https",
        )

    def _send(self, response: Response) -> None:
        body = response.body
        try:
            headers = dict(response.headers)
            if isinstance(body, bytes):
                if response.status not in (204, 304):
                    headers.setdefault("Content-Length", str(len(body)))
                self._run(self._send_whole(response.status, self._encode(headers), body))
            else:
                self._run(self._start(response.status, self._encode(headers)))
                self._send_blocks(body)
        finally:
            close = getattr(body, "close", None)
            if close is not None:
                close()

    def _encode(self, headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
        if self._body.is_awaited(self._scope):
            # The client waits for a word that never comes, or sends its body all the same: only
            # on a new connection can both sides be sure where a request begins.
            headers["Connection"] = "close"
        return [
            (name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()
        ]

    def _send_blocks(self, blocks: Iterator[bytes]) -> None:
        """One block is on its way while the next is made."""
        watch = asyncio.run_coroutine_threadsafe(self._watch(), self._loop)
        sending: Future[None] | None = None
        try:
            for block in blocks:
                self._wait(sending)
                if self._is_gone:
                    raise ClientGone
                message = {"type": "http.response.body", "body": bytes(block), "more_body": True}
                sending = asyncio.run_coroutine_threadsafe(self._send_one(message), self._loop)
            self._wait(sending)
            self._run(self._send_one({"type": "http.response.body", "body": b""}))
        except CalqueError as error:
            if isinstance(error, ClientGone):
                raise
            # The head is sent: all that is left is to break off, so that nobody takes a part of
            # the object for the whole.
            _log.warning("a download broke off: %s", type(error).__name__)
            raise ClientGone("the answer could not be finished") from error
        finally:
            watch.cancel()

    async def _send_whole(
        self, status: int, headers: list[tuple[bytes, bytes]], body: bytes
    ) -> None:
        await self._start(status, headers)
        await self._send_one({"type": "http.response.body", "body": body})

    async def _start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        await self._send_one({"type": "http.response.start", "status": status, "headers": headers})

    async def _send_one(self, message: dict[str, Any]) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                await self._send_message(message)
        except TimeoutError:
            self._is_gone = True

    async def _watch(self) -> None:
        """Learn that the client is gone: to send to nobody is no error of uvicorn's."""
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                self._is_gone = True
                return

    def _run(self, work: Any) -> None:
        self._wait(asyncio.run_coroutine_threadsafe(work, self._loop))

    def _wait(self, sending: Future[None] | None) -> None:
        if sending is not None:
            sending.result()


class _Body:
    """The body of a request, a block ahead of its reader."""

    def __init__(self, loop: asyncio.AbstractEventLoop, receive: Receive) -> None:
        self._loop = loop
        self._receive = receive
        self._held = memoryview(b"")
        self._next: Future[bytes] | None = None
        self._is_over = False
        self._was_read = False

    def read(self, most: int, /) -> bytes:
        while not self._held:
            if self._next is None:
                if self._is_over:
                    return b""
                self._fetch()
            assert self._next is not None
            self._held = memoryview(self._next.result())
            self._next = None
            if not self._is_over:
                self._fetch()
            elif not self._held:
                return b""
        block, self._held = self._held[:most], self._held[most:]
        return bytes(block)

    def is_awaited(self, scope: dict[str, Any]) -> bool:
        """Whether the client waits for leave to send a body that nobody read."""
        expects = any(name == b"expect" for name, _ in scope["headers"])
        return expects and not self._was_read

    def close(self) -> None:
        if self._next is not None:
            self._next.cancel()

    def _fetch(self) -> None:
        self._was_read = True
        self._next = asyncio.run_coroutine_threadsafe(self._collect(), self._loop)

    async def _collect(self) -> bytes:
        parts: list[bytes] = []
        size = 0
        while size < BLOCK:
            try:
                async with asyncio.timeout(PATIENCE):
                    message = await self._receive()
            except TimeoutError as error:
                self._is_over = True
                raise S3Error(
                    "RequestTimeout",
                    "Your socket connection to the server was not read from or written to within "
                    "the timeout period.",
                ) from error
            if message["type"] == "http.disconnect":
                self._is_over = True
                raise ClientGone
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if not message.get("more_body", False):
                self._is_over = True
                break
        return b"".join(parts)


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
    listening = _listen(host, port)
    threads = ThreadPoolExecutor(THREADS, thread_name_prefix="calque-s3")
    server = uvicorn.Server(
        uvicorn.Config(
            GatewayApp(gateway, threads),
            lifespan="off",
            access_log=False,  # queries hold signatures
            log_config=None,
            server_header=False,
            date_header=False,
            timeout_keep_alive=_KEEP_ALIVE,
            timeout_graceful_shutdown=_GRACE,
            ssl_certfile=None if tls is None else tls.certificate,
            ssl_keyfile=None if tls is None else tls.key,
        )
    )
    thread = threading.Thread(
        target=server.run, args=([listening],), name="calque-s3-server", daemon=True
    )
    thread.start()
    try:
        _wait_until_started(server, thread)
        scheme = "http" if tls is None else "https"
        shown = f"[{host}]" if ":" in host else host
        yield f"{scheme}://{shown}:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        threads.shutdown(wait=True, cancel_futures=True)
        listening.close()


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


def _wait_until_started(server: uvicorn.Server, thread: threading.Thread) -> None:
    while not server.started:
        if not thread.is_alive():
            raise Unavailable("the S3 server did not start")
        thread.join(0.01)
