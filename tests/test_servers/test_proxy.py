"""The proxy that fails others must not fail by itself."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.servers.proxy import Fault, FaultProxy, Reply


class Echo(BaseHTTPRequestHandler):
    """Answers with the method, the target and the body that it was sent."""

    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        told = f"{self.command} {self.path} {self.headers['host']} ".encode() + body
        self.send_response(200)
        self.send_header("Content-Length", str(len(told)))
        self.send_header("X-Kept", "yes")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(told)

    do_GET = answer  # noqa: N815
    do_PUT = answer  # noqa: N815
    do_HEAD = answer  # noqa: N815

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""


@pytest.fixture
def proxy() -> Iterator[FaultProxy]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with FaultProxy(f"http://127.0.0.1:{server.server_address[1]}") as running:
        yield running
    server.shutdown()
    server.server_close()


def ask(proxy: FaultProxy, method: str = "GET", target: str = "/x", body: bytes = b"") -> Reply:
    connection = http.client.HTTPConnection(proxy.endpoint.removeprefix("http://"), timeout=60)
    try:
        connection.request(method, target, body=body or None, headers={"Host": "signed.host"})
        reply = connection.getresponse()
        return Reply(reply.status, dict(reply.getheaders()), reply.read())
    finally:
        connection.close()


def test_it_passes_everything_on(proxy: FaultProxy) -> None:
    """Method, target, Host, body, status and headers are unchanged."""
    reply = ask(proxy, "PUT", "/a%20b//c?x=%2F", b"body")
    assert reply.body == b"PUT /a%20b//c?x=%2F signed.host body"
    assert reply.headers["X-Kept"] == "yes"
    assert ask(proxy, "HEAD").headers["Content-Length"] == "20"


def test_faults_have_their_turns(proxy: FaultProxy) -> None:
    """After so many, so many times, for those that match, in order."""
    proxy.add(Fault(contains="/x", after=1, times=2, reply=Reply(503, {"Retry-After": "1"})))
    assert [ask(proxy).status for _ in range(4)] == [200, 503, 503, 200]
    assert ask(proxy, target="/y").status == 200
    assert proxy.count(contains="/x") == 4


def test_a_dropped_request(proxy: FaultProxy) -> None:
    """The client gets no answer."""
    proxy.add(Fault(drop=True))
    with pytest.raises((http.client.HTTPException, OSError)):
        ask(proxy)
    assert ask(proxy).status == 200


def test_a_cut_reply(proxy: FaultProxy) -> None:
    """The length is promised and not kept."""
    proxy.add(Fault(cut=3))
    with pytest.raises(http.client.IncompleteRead) as raised:
        ask(proxy)
    assert raised.value.partial == b"GET"


def test_an_edited_and_a_trickling_reply(proxy: FaultProxy) -> None:
    """What the server said may be changed, or come late behind white space."""
    proxy.add(Fault(edit=lambda reply: reply.without("x-kept")), Fault(trickle=0.2))
    assert "X-Kept" not in ask(proxy).headers
    late = ask(proxy)
    assert late.body.startswith(b"  ")
    assert late.body.strip() == b"GET /x signed.host"


def test_it_counts_what_is_in_flight(proxy: FaultProxy) -> None:
    """The most at one time, and how many each request met."""
    together = threading.Barrier(3)
    proxy.add(Fault(times=None, hook=lambda _: together.wait(60) and None))
    threads = [threading.Thread(target=ask, args=(proxy,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert proxy.max_in_flight == 3
    proxy.reset()
    assert proxy.count() == 0
