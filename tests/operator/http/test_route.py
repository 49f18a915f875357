"""The way to a host: every step of it ends when nobody wants it any more."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from calque.operator.http.connection import WireError
from calque.operator.http.pool import Pool
from calque.operator.http.route import Route
from tests.servers.process import free_ports

LONG = 300.0
"""A connect timeout that no test outlives."""
WAYS = ("no answer to a connect", "no TLS", "no tunnel")


@contextmanager
def _silent(way: str) -> Iterator[Route]:
    """A peer that takes a connection and says nothing, or takes none at all."""
    with ExitStack() as held:
        listener = held.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        host = f"127.0.0.1:{listener.getsockname()[1]}"
        if way == "no answer to a connect":
            _fill(listener, held)
            yield Route("http", host, LONG)
        elif way == "no TLS":
            yield Route("https", host, LONG, ssl.create_default_context())
        else:
            yield Route("https", "127.0.0.1:1", LONG, proxy=f"http://me:secret@{host}")


def _fill(listener: socket.socket, held: ExitStack) -> None:
    """Take every place among those that wait to be accepted: the next one gets no answer."""
    for _ in range(8):
        waiting = held.enter_context(socket.socket())
        waiting.settimeout(0.2)
        try:
            waiting.connect(listener.getsockname())
        except TimeoutError:
            return
    pytest.skip("this system lets everybody wait")


def _exchange(pool: Pool, **bounds: object) -> WireError:
    with pytest.raises(WireError) as caught:
        pool.exchange(
            b"GET / HTTP/1.1\r\n\r\n",
            b"",
            bodiless=False,
            timeout=LONG,
            repeatable=True,
            **bounds,  # type: ignore[arg-type]
        )
    return caught.value


@pytest.mark.parametrize("way", WAYS)
def test_a_stop_ends_it(way: str) -> None:
    """Told from another thread while the connection is being made."""
    stopped, failures = threading.Event(), list[WireError]()
    with _silent(way) as route:
        pool = Pool(route, 1, patience=LONG)
        asking = threading.Thread(
            target=lambda: failures.append(_exchange(pool, stopped=stopped.is_set)), daemon=True
        )
        asking.start()
        asking.join(0.5)
        assert asking.is_alive(), "this peer was to be silent"
        stopped.set()
        asking.join(30)
        assert not asking.is_alive()
    assert failures[0].stopped
    assert not failures[0].sent


@pytest.mark.parametrize("way", WAYS)
def test_the_time_for_the_whole_ends_it(way: str) -> None:
    """It counts from the first step, not anew with each."""
    with _silent(way) as route:
        failure = _exchange(Pool(route, 1, patience=LONG), within=0.3)
    assert not failure.sent
    assert "secret" not in str(failure)


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n", b"SSH-2.0-OpenSSH\r\n", b""]
)
def test_a_proxy_that_opens_no_tunnel(answer: bytes) -> None:
    """Nothing was sent to the host, and the message tells no password."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.recv(65536)
                peer.sendall(answer)

        threading.Thread(target=refuse, daemon=True).start()
        proxy = f"http://me:secret@127.0.0.1:{listener.getsockname()[1]}"
        route = Route("https", "storage.example", LONG, proxy=proxy)
        failure = _exchange(Pool(route, 1, patience=LONG))
    assert not failure.sent
    assert "secret" not in str(failure)


def test_nobody_there() -> None:
    """The system's own words; a name that can be no host's is told likewise."""
    (port,) = free_ports(1)
    for host in (f"127.0.0.1:{port}", "a" * 64 + ".example"):
        failure = _exchange(Pool(Route("http", host, LONG), 1, patience=LONG))
        assert not failure.sent
        assert str(failure)
