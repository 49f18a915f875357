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
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import uvicorn

from calque.errors import CalqueError, ConfigInvalid, Unavailable
from calque.gateway.errors import ClientGone, S3Error
from calque.gateway.gateway import Gateway
from calque.gateway.http_protocol import BoundedProtocol
from calque.gateway.request import BLOCK, Headers, Request, Response
from calque.store.metainfo.tls import ServerCertificate

T = TypeVar("T")

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
        line = _Line(loop, receive, send)
        exchange = _Exchange(scope, line)
        try:
            await loop.run_in_executor(self._threads, exchange.run, self._gateway)
        finally:
            # The server may be told to stop while a client is silent: its thread must not wait.
            line.hang_up()


class _Line:
    """What a thread says and hears over the loop's connection; every wait ends with it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, receive: Receive, send: Send) -> None:
        self._loop = loop
        self._receive = receive
        self._send = send
        self._under_way: set[Future[Any]] = set()
        self._gone = threading.Event()

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start something on the loop; ClientGone when nobody is there any more."""
        if self._gone.is_set():
            work.close()
            raise ClientGone
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        self._under_way.add(future)
        future.add_done_callback(self._under_way.discard)
        if self._gone.is_set():  # hung up in between
            future.cancel()
        return future

    def wait(self, future: Future[T]) -> T:
        try:
            return future.result()
        except CancelledError as error:
            raise ClientGone from error

    def hang_up(self) -> None:
        """End every wait of the thread."""
        self._gone.set()
        for future in [*self._under_way]:
            future.cancel()

    async def hear(self) -> dict[str, Any]:
        """The next message of the client; RequestTimeout when it is silent for too long."""
        try:
            async with asyncio.timeout(PATIENCE):
                message = await self._receive()
        except TimeoutError as error:
            raise S3Error(
                "RequestTimeout",
                "Your socket connection to the server was not read from or written to within "
                "the timeout period.",
            ) from error
        if message["type"] == "http.disconnect":
            self._gone.set()
            raise ClientGone
        return message

    async def say(self, message: dict[str, Any]) -> None:
        """Send; a client that takes nothing for too long is as good as gone."""
        try:
            async with asyncio.timeout(PATIENCE):
                await self._send(message)
        except TimeoutError:
            self._gone.set()

    async def watch(self) -> None:
        """Learn that the client is gone: to send to nobody is no error of uvicorn's."""
        while not self._gone.is_set():
            message = await self._receive()
            if message["type"] == "http.disconnect":
                self._gone.set()


class _Exchange:
    """One request and its answer, in a thread of its own."""

    def __init__(self, scope: dict[str, Any], line: _Line) -> None:
        self._scope = scope
        self._line = line
        self._body = _Body(line)

    def run(self, gateway: Gateway) -> None:
        try:
            self._send(gateway.handle(self._request()))
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
        body, headers = response.body, dict(response.headers)
        if isinstance(body, bytes):
            if response.status not in (204, 304):
                headers.setdefault("Content-Length", str(len(body)))
            self._do(self._say_all(response.status, self._encode(headers), body))
            return
        try:
            self._do(self._start(response.status, self._encode(headers)))
            self._send_blocks(body)
        finally:
            close = getattr(body, "close", None)
            if close is not None:
                close()

    def _encode(self, headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
        expects = any(name == b"expect" for name, _ in self._scope["headers"])
        if expects and not self._body.was_read:
            # The client waits for a word that never comes, or sends its body all the same: only
            # on a new connection can both sides be sure where a request begins.
            headers["Connection"] = "close"
        return [(n.encode("latin-1"), v.encode("latin-1")) for n, v in headers.items()]

    def _send_blocks(self, blocks: Iterator[bytes]) -> None:
        """One block is on its way while the next is made."""
        watch = self._line.begin(self._line.watch())
        sending: Future[None] | None = None
        try:
            for block in blocks:
                if sending is not None:
                    self._line.wait(sending)
                message = {"type": "http.response.body", "body": bytes(block), "more_body": True}
                sending = self._line.begin(self._line.say(message))
            if sending is not None:
                self._line.wait(sending)
            self._do(self._line.say({"type": "http.response.body", "body": b""}))
        except ClientGone:
            raise
        except CalqueError as error:
            # The head is sent: all that is left is to break off, so that nobody takes a part of
            # the object for the whole.
            _log.warning("a download broke off: %s", type(error).__name__)
            raise ClientGone("the answer could not be finished") from error
        finally:
            watch.cancel()

    async def _say_all(self, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
        await self._start(status, headers)
        await self._line.say({"type": "http.response.body", "body": body})

    async def _start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        await self._line.say({"type": "http.response.start", "status": status, "headers": headers})

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        self._line.wait(self._line.begin(work))


class _Body:
    """The body of a request, a block ahead of its reader."""

    def __init__(self, line: _Line) -> None:
        self._line = line
        self._held = memoryview(b"")
        self._next: Future[bytes] | None = None
        self._is_over = False
        self.was_read = False

    def read(self, most: int, /) -> bytes:
        while not self._held:
            if self._next is None:
                if self._is_over:
                    return b""
                self._fetch()
            assert self._next is not None
            self._held = memoryview(self._line.wait(self._next))
            self._next = None
            if not self._is_over:
                self._fetch()
        block, self._held = self._held[:most], self._held[most:]
        return bytes(block)

    def close(self) -> None:
        if self._next is not None:
            self._next.cancel()

    def _fetch(self) -> None:
        self.was_read = True
        self._next = self._line.begin(self._collect())

    async def _collect(self) -> bytes:
        parts: list[bytes] = []
        size = 0
        while size < BLOCK:
            message = await self._line.hear()
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
            http=BoundedProtocol,
            ws="none",  # nothing here answers one
            lifespan="off",
            proxy_headers=False,  # nobody's word is taken for where a request came from
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
