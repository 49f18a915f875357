"""One HTTP exchange: what must hold of every service that sends by it."""

import gc
import socket
import threading
import time
from collections.abc import Iterator
from email.utils import formatdate

import pytest

from calque.errors import ConfigInvalid, InvalidInput, TimedOut, Unavailable
from calque.operator.http.exchange import Wire, retry_after
from calque.operator.layers.chain import Call
from tests.servers.gcs_fake import GcsFake
from tests.servers.process import free_ports
from tests.servers.proxy import Fault, FaultProxy, Reply

TARGET = "/storage/v1/b/near/o"


@pytest.fixture
def fake() -> Iterator[GcsFake]:
    """Any server would do."""
    with GcsFake() as running:
        running.make_bucket("near")
        yield running


@pytest.fixture
def proxy(fake: GcsFake) -> Iterator[FaultProxy]:
    """Faults before it."""
    with FaultProxy(fake.endpoint) as running:
        yield running


def test_an_answer_of_any_status_is_an_answer(fake: GcsFake) -> None:
    """Only the caller knows what a refusal means."""
    wire = Wire(fake.endpoint)
    assert wire.exchange("GET", TARGET, {}).status == 200
    assert wire.exchange("GET", "/nowhere", {}).status == 404
    answer, pieces = wire.open("/nowhere", {})
    assert (answer.status, list(pieces)) == (404, [])
    assert b"Not Found" in answer.body


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\rb", "a\0b"])
def test_a_header_cannot_be_smuggled_in(fake: GcsFake, value: str) -> None:
    """Line breaks in metadata are bad input, not a second header."""
    with pytest.raises(InvalidInput):
        Wire(fake.endpoint).exchange("GET", TARGET, {"X-Meta": value})


def test_a_body_that_is_dropped_gives_its_connection_back(fake: GcsFake) -> None:
    """Read in part or not at all: nobody waits for a place that never comes."""
    wire = Wire(fake.endpoint, connections=1)
    for read in (0, 1):
        _, pieces = wire.open(TARGET, {})
        for _ in range(read):
            next(pieces)
        del pieces
        gc.collect()
        assert wire.exchange("GET", TARGET, {}).status == 200


def test_writes_are_not_repeated_unheard(proxy: FaultProxy) -> None:
    """A lost answer of a write is an error; the retry layer knows, and its caller can look."""
    wire = Wire(proxy.endpoint)
    wire.exchange("GET", TARGET, {})
    proxy.add(Fault(method="POST", drop=True, acted=True))
    with pytest.raises(Unavailable) as raised:
        wire.exchange("POST", TARGET, {}, b"{}")
    assert not raised.value.surely_not_acted
    assert proxy.count("POST") == 1


def test_what_was_never_sent_may_be_sent_again() -> None:
    """Nobody listens: surely nothing was done."""
    (port,) = free_ports(1)
    with pytest.raises(Unavailable) as raised:
        Wire(f"http://127.0.0.1:{port}").exchange("POST", "/", {}, b"x")
    assert raised.value.surely_not_acted
    with pytest.raises(Unavailable, match="cannot reach"):
        Wire("http://no-such-host.invalid").exchange("GET", "/", {})


def test_time_is_limited(proxy: FaultProxy) -> None:
    """A server that does not answer is TimedOut, not waited for for ever."""
    proxy.add(Fault(delay=60.0))
    with pytest.raises(TimedOut):
        Wire(proxy.endpoint).exchange("GET", TARGET, {}, call=Call("stat", "", timeout=0.2))


def test_a_cut_body_is_an_error(proxy: FaultProxy) -> None:
    """Fewer bytes than promised are never taken for all."""
    proxy.add(Fault(cut=5, reply=Reply(200, {}, b"0123456789")), Fault(cut=5, times=None))
    wire = Wire(proxy.endpoint)
    with pytest.raises(Unavailable):
        wire.exchange("GET", TARGET, {})
    _, pieces = wire.open(TARGET, {})
    with pytest.raises(Unavailable):
        b"".join(pieces)


def test_tls_where_there_is_none(fake: GcsFake) -> None:
    """A plain server behind https:// is an error that says whom it could not reach."""
    with pytest.raises((Unavailable, ConfigInvalid), match="127"):
        Wire(fake.endpoint.replace("http://", "https://")).exchange("GET", TARGET, {})


def test_a_connection_of_http_1_0_is_used_once() -> None:
    """Such a server closes after each answer, whether it says so or not."""
    listener = socket.create_server(("127.0.0.1", 0))
    served = []

    def serve() -> None:
        for _ in range(3):
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                served.append(1)
                connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    wire = Wire(f"http://127.0.0.1:{listener.getsockname()[1]}")
    assert [wire.exchange("PUT", "/", {}, b"x").body for _ in range(3)] == [b"ok"] * 3
    thread.join(60)
    listener.close()
    assert len(served) == 3


def test_retry_after() -> None:
    """Seconds or a date; nonsense is nothing."""
    assert retry_after({"retry-after": "12"}) == 12.0
    soon = formatdate(time.time() + 60, usegmt=True)
    assert 50 < (retry_after({"retry-after": soon}) or 0) <= 60
    assert retry_after({"retry-after": "Thu, 01 Jan 1970 00:00:00 GMT"}) == 0.0
    assert retry_after({"retry-after": "1.5"}) == 1.5
    assert retry_after({"retry-after": "-3"}) == 0.0
    for nonsense in ("soon", "nan", "inf"):
        assert retry_after({"retry-after": nonsense}) is None
    assert retry_after({}) is None
