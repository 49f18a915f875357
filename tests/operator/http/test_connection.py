"""HTTP over a kept connection, against a server that says exactly what the test wants."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from calque.operator.http.connection import Reply, WireError
from calque.operator.http.pool import Pool
from calque.operator.http.route import Route

GET = b"GET / HTTP/1.1\r\n\r\n"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Scripted:
    """Answers the n-th request it gets with the n-th script; None hangs up. Counts connections."""

    def __init__(self, scripts: list[bytes | None], *, close_after: bool = False) -> None:
        self._scripts = iter(scripts)
        self._close_after = close_after
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.connections = 0
        self.requests: list[bytes] = []
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._listening.getsockname()[1]}"

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                peer, _ = self._listening.accept()
                self.connections += 1
                threading.Thread(target=self._serve, args=(peer,), daemon=True).start()

    def _serve(self, peer: socket.socket) -> None:
        with peer, contextlib.suppress(OSError):
            while request := peer.recv(65536):
                self.requests.append(request)
                script = next(self._scripts, None)
                if script is None:
                    return
                peer.sendall(script)
                if self._close_after:
                    return

    def close(self) -> None:
        self._listening.close()


@contextlib.contextmanager
def scripted(*scripts: bytes | None, close_after: bool = False) -> Iterator[tuple[Scripted, Pool]]:
    server = Scripted(list(scripts), close_after=close_after)
    pool = Pool(Route("http", server.host, 5.0), 2, patience=0.2)
    try:
        yield server, pool
    finally:
        pool.close()
        server.close()


def ask(pool: Pool, *, repeatable: bool = True, bodiless: bool = False) -> tuple[int, bytes]:
    connection, reply = pool.exchange(
        GET, b"", bodiless=bodiless, timeout=60, repeatable=repeatable
    )
    try:
        return reply.status, reply.read()
    finally:
        pool.release(connection)


def test_a_connection_is_kept() -> None:
    """Many requests, one connection."""
    with scripted(OK, OK, OK) as (server, pool):
        assert [ask(pool) for _ in range(3)] == [(200, b"ok")] * 3
        assert server.connections == 1


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (CHUNKED + b"2\r\nab\r\n1;x=y\r\nc\r\n0\r\n\r\n", b"abc"),
        (CHUNKED + b"0\r\nX-Trailer: 1\r\n\r\n", b""),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", b"x"),
        (b"HTTP/1.1 200\r\ncontent-length:3\r\n\r\nabc", b"abc"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    ],
)
def test_bodies_of_every_shape(script: bytes, expected: bytes) -> None:
    """Lengths, chunks, trailers, interim replies and none at all; the connection is kept."""
    with scripted(script, OK) as (server, pool):
        assert ask(pool)[1] == expected
        assert ask(pool) == (200, b"ok")
        assert server.connections == 1


def test_a_reply_to_head_has_no_body() -> None:
    """Although it names a length."""
    with scripted(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n", OK) as (server, pool):
        assert ask(pool, bodiless=True) == (200, b"")
        assert ask(pool) == (200, b"ok")
        assert server.connections == 1


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    """And the connection is not kept."""
    with scripted(b"HTTP/1.1 200 OK\r\n\r\nall of it", close_after=True) as (_, pool):
        assert ask(pool) == (200, b"all of it")


@pytest.mark.parametrize(
    "script",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Le",
        b"nonsense that is long enough\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 500 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n",
    ],
)
def test_replies_that_are_cut_or_broken(script: bytes) -> None:
    """WireError, never bytes that look whole; the next request gets a new connection."""
    with scripted(script, OK, close_after=True) as (_, pool):
        with pytest.raises(WireError):
            ask(pool)
        assert ask(pool) == (200, b"ok")


def test_a_kept_connection_that_was_closed_is_not_used() -> None:
    """The server closed it while it was idle: seen before anything is sent."""
    with scripted(OK, OK, close_after=True) as (server, pool):
        assert ask(pool) == (200, b"ok")
        ((_, kept),) = pool._idle
        while not kept.stale():
            time.sleep(0.01)
        assert ask(pool, repeatable=False) == (200, b"ok")
        assert server.connections == 2


def test_a_kept_connection_that_breaks_is_tried_once_more() -> None:
    """It broke before a reply came: one more try on a new connection."""
    with scripted(OK, None, OK) as (server, pool):
        ask(pool)
        assert ask(pool) == (200, b"ok")
        assert len(server.requests) == 3


def test_what_may_not_be_repeated_is_not() -> None:
    """The server may have acted: the error is told."""
    with scripted(OK, None, OK) as (server, pool):
        ask(pool)
        with pytest.raises(WireError) as raised:
            ask(pool, repeatable=False)
        assert raised.value.sent
        assert len(server.requests) == 2


def test_a_new_connection_that_breaks_is_not_tried_again() -> None:
    """Once is enough: more is the retry layer's."""
    with scripted(None, OK) as (server, pool):
        with pytest.raises(WireError):
            ask(pool)
        assert len(server.requests) == 1


def test_connections_are_bounded() -> None:
    """With all in use the next waits, and is told when none comes free."""
    slow = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"
    with scripted(slow, slow) as (_, pool):
        held = [
            pool.exchange(GET, b"", bodiless=False, timeout=60, repeatable=True) for _ in range(2)
        ]
        with pytest.raises(WireError, match="2 connections were busy") as raised:
            ask(pool)
        assert not raised.value.sent
        for connection, _reply in held:
            pool.release(connection)


def test_a_reply_whose_last_byte_was_read_keeps_its_connection() -> None:
    """Whoever knows the size stops there, and does not ask whether there is more."""
    with scripted(OK, OK) as (server, pool):
        connection, reply = pool.exchange(GET, b"", bodiless=False, timeout=60, repeatable=True)
        assert isinstance(reply, Reply)
        pieces = reply.pieces(1)
        assert next(pieces) == b"o"
        assert not connection.reusable
        assert next(pieces) == b"k"
        pool.release(connection)
        assert ask(pool) == (200, b"ok")
        assert server.connections == 1


def test_a_reply_that_was_not_read_costs_its_connection() -> None:
    """Bytes of one answer never become those of the next."""
    with scripted(OK, OK) as (server, pool):
        connection, reply = pool.exchange(GET, b"", bodiless=False, timeout=60, repeatable=True)
        assert isinstance(reply, Reply)
        pool.release(connection)
        assert ask(pool) == (200, b"ok")
        assert server.connections == 2


def test_many_threads_share_few_connections() -> None:
    """Two connections serve sixteen requests of eight threads, each its own answer."""
    with scripted(*[OK] * 16) as (server, pool):
        patient = Pool(pool.route, 2, patience=10)
        answers: list[tuple[int, bytes]] = []

        def work() -> None:
            answers.extend(ask(patient) for _ in range(2))

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        patient.close()
        assert answers == [(200, b"ok")] * 16
        assert server.connections <= 2


def test_a_forked_child_has_its_own_connections() -> None:
    """It neither speaks on its parent's nor waits for them."""
    with scripted(*[OK] * 4) as (server, pool):
        ask(pool)
        held = [
            pool.exchange(GET, b"", bodiless=False, timeout=60, repeatable=True) for _ in range(2)
        ]
        child = os.fork()
        if child == 0:
            try:
                os._exit(0 if ask(pool) == (200, b"ok") else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert server.connections == 3
        for connection, reply in held:
            assert reply.read() == b"ok"
            pool.release(connection)
