"""Connections that never end what they begin, and bytes that are no request."""

from __future__ import annotations

import contextlib
import errno
import select
import socket
import time
from queue import Queue

import pytest

from calque.gateway import server
from calque.gateway.http import connection
from calque.gateway.http import watch as watch_of_connections
from calque.gateway.http.watch import Watch
from calque.gateway.server import LINGER, serve_gateway
from tests.gateway.test_server import connect, head_of, read_answer, wait_until
from tests.gateway.world import World


def test_heads_have_an_end(world: World, bucket: str) -> None:
    """A head that goes on and on is refused; a long one that ends is not."""
    with connect(world) as line:
        line.sendall(b"GET / HTTP/1.1\r\nhost: x\r\na: ")
        answer = b""
        with contextlib.suppress(ConnectionError):
            for _ in range(64):
                line.sendall(b"x" * 65536)
        with contextlib.suppress(ConnectionError):
            answer = line.recv(1000)
    assert answer == b"" or answer.startswith(b"HTTP/1.1 400")
    with connect(world) as line:
        line.sendall(head_of(world, "GET", f"/{bucket}", {"x-amz-meta-a": "b" * 30_000}))
        assert read_answer(line).status == 200


def test_trailers_of_http_have_an_end(world: World, bucket: str) -> None:
    """What follows a chunked body is no header, and is not taken for ever."""
    headers = {
        "transfer-encoding": "chunked",
        "content-encoding": "aws-chunked",
        "x-amz-decoded-content-length": "5",
    }
    payload = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
    head = head_of(world, "PUT", f"/{bucket}/k", headers, payload=payload)
    body = b"f\r\n5\r\nhello\r\n0\r\n\r\n\r\n0\r\n"
    with connect(world) as line:
        line.sendall(head + body + b"x-amz-meta-late: 1\r\nexpect: 100-continue\r\n\r\n")
        assert read_answer(line).status == 200
    assert "late" not in world.project.stat(bucket, "k").metadata
    sent = 0
    with connect(world) as line, contextlib.suppress(ConnectionError):
        line.sendall(b"POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n0\r\na: ")
        for sent in range(64):  # noqa: B007
            line.sendall(b"x" * 65536)
        while line.recv(65536):
            pass
        sent = 0  # closed, and not reset: it read some, and said so
    assert sent < 63


def test_a_head_has_a_time(world: World, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection that never ends its head is closed, also one that never begins; others stay."""
    monkeypatch.setattr(connection, "HEAD_PATIENCE", 3.0)
    with serve_gateway(world.gateway) as url:
        other = World(world.store, world.gateway, world.key, url)
        busy_one = connect(other)
        head = head_of(other, "PUT", f"/{bucket}/k", {"content-length": "5"})
        busy_one.sendall(head)
        silent, half, answered = connect(other), connect(other), connect(other)
        half.sendall(b"GET / HTTP/1.1\r\nhost")
        answered.sendall(b"PUT /b/k HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n")
        with read_answer(answered) as answer:
            assert answer.status == 403
            answer.read()
        answered.sendall(b"x")  # and then no more
        for line in (silent, half, answered):
            with line, contextlib.suppress(ConnectionResetError):
                assert line.recv(100) == b""
        busy_one.sendall(b"hello")
        with busy_one, read_answer(busy_one) as answer:
            assert answer.status == 200


def test_an_upgrade_is_not_taken(world: World) -> None:
    """Whatever packages are installed, a request to speak another protocol is a plain request."""
    with connect(world) as line:
        line.sendall(
            b"GET / HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
            b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n"
        )
        assert read_answer(line).status == 403


@pytest.mark.parametrize(
    "sent",
    [
        b"\x00\x01\x02\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /\xff\xfe HTTP/1.1\r\nhost: x\r\n\r\n",
        b"GET http://[::1 HTTP/1.1\r\nhost: x\r\n\r\n",
        b"PUT /b/k HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n",
        b"PUT /b/k HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 50 + b"\r\n",
        b"OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n",
    ],
)
def test_what_is_no_request(world: World, bucket: str, sent: bytes) -> None:
    """4xx or a closed connection, never 500, and the server goes on."""
    with connect(world) as line:
        line.sendall(sent)
        line.shutdown(socket.SHUT_WR)
        answer = line.recv(65536)
    assert answer == b"" or answer.split()[1][:1] == b"4", answer
    assert world.client().list_objects_v2(Bucket=bucket)["KeyCount"] == 0


PIPELINED = b"GET /second HTTP/1.1\r\nhost: x\r\n\r\n"


@pytest.mark.parametrize(
    "head",
    [
        b"content-length: 5\r\ntransfer-encoding: chunked\r\n",
        b"transfer-encoding: chunked\r\ncontent-length: 5\r\n",
        b"content-length: 5\r\ncontent-length: 6\r\n",
        b"content-length: 5, 6\r\n",
        b"content-length: +5\r\n",
        b"content-length: 0x5\r\n",
        b"transfer-encoding: gzip, chunked\r\n",
        b"transfer-encoding: chunked, identity\r\n",
        b"transfer-encoding: xchunked\r\n",
        b"transfer-encoding : chunked\r\n",
        b"transfer-encoding: \xa0chunked\r\n",
        b"transfer-encoding:\r\n chunked\r\n",
        b"content-length:\r\n 5\r\n",
        b"content-length: 5\n\n",
        b"host: y\r\n",
    ],
)
def test_where_a_body_ends_is_never_guessed(world: World, head: bytes) -> None:
    """A proxy before us might see another end: such a request is refused, and the line closed."""
    with connect(world) as line:
        line.sendall(b"PUT /b/k HTTP/1.1\r\nhost: x\r\n" + head + b"\r\n0\r\n\r\n" + PIPELINED)
        said = read_to_end(line)
    assert said.count(b"HTTP/1.1") <= 1
    assert said == b"" or said.split()[1] == b"400"


@pytest.mark.parametrize(
    "head",
    [
        b"PUT /b/k HTTP/1.0\r\nhost: x\r\nconnection: keep-alive\r\ntransfer-encoding: chunked\r\n",
        b"GET / HTTP/1.1\r\n",
        b"GET http://y/ HTTP/1.1\r\nhost: x\r\n",
        b"GET http://me@x/ HTTP/1.1\r\nhost: x\r\n",
        b"GET ftp://x/ HTTP/1.1\r\nhost: x\r\n",
        b"GET /\r\n",
        b"GET / HTTP/1.2\r\nhost: x\r\n",
    ],
)
def test_whom_a_request_is_for_is_never_guessed(world: World, head: bytes) -> None:
    """One host, a version that both sides speak, no chunks in one that has none: or 400."""
    with connect(world) as line:
        line.sendall(head + b"\r\n0\r\n\r\n" + PIPELINED)
        said = read_to_end(line)
    assert said.count(b"HTTP/1.1") == 1
    assert said.split()[1] == b"400"


def test_a_target_that_names_its_host(world: World, bucket: str) -> None:
    """As clients send it to a proxy: the same request."""
    world.project.upload(bucket, "k", b"x")
    head = head_of(world, "GET", f"/{bucket}/k", {})
    with connect(world) as line:
        line.sendall(head.replace(b"GET /", f"GET {world.url}/".encode(), 1))
        assert read_answer(line).read() == b"x"


def test_clients_of_http_1_0(world: World, bucket: str) -> None:
    """They are told that the line stays open, and are not given a leave that they do not know."""
    head = head_of(world, "PUT", f"/{bucket}/k", {"content-length": "1", "expect": "100-continue"})
    old = head.replace(b"HTTP/1.1", b"HTTP/1.0", 1)
    with connect(world) as line:
        line.sendall(old[:-2] + b"connection: keep-alive\r\n\r\nx")
        answer = read_answer(line)
        assert (answer.status, answer.getheader("connection")) == (200, "keep-alive")
        answer.read()
        line.sendall(old)
        line.shutdown(socket.SHUT_WR)
        assert read_to_end(line) == b""


def test_a_leave_that_is_asked_for_twice(world: World, bucket: str) -> None:
    """A proxy may add the header to one that is there; the client still waits."""
    head = head_of(world, "PUT", f"/{bucket}/k", {"content-length": "1", "expect": "100-continue"})
    with connect(world) as line:
        line.sendall(head[:-2] + b"Expect: 100-Continue\r\n\r\n")
        assert line.recv(100).startswith(b"HTTP/1.1 100")
        line.sendall(b"x")
        assert read_answer(line).status == 200


def test_chunks_of_who_would_speak_another_protocol(world: World, bucket: str) -> None:
    """As curl sends an upload by default where it knows HTTP/2: the body is read, and no other."""
    headers = {
        "transfer-encoding": "chunked",
        "content-encoding": "aws-chunked",
        "x-amz-decoded-content-length": "5",
        "connection": "Upgrade, HTTP2-Settings",
        "upgrade": "h2c",
    }
    payload = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
    head = head_of(world, "PUT", f"/{bucket}/k", headers, payload=payload)
    with connect(world) as line:
        line.sendall(head + b"f\r\n5\r\nhello\r\n0\r\n\r\n\r\n0\r\n\r\n" + PIPELINED)
        said = read_to_end(line)
    assert said.count(b"HTTP/1.1") == 1
    assert said.split()[1] == b"200"
    assert world.project.download(bucket, "k").read() == b"hello"


class _Crowded(socket.socket):
    """A listening socket of a system that has no room for a connection, and then some."""

    refusals = 0

    def accept(self) -> tuple[socket.socket, object]:
        if self.refusals:
            self.refusals -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return super().accept()


def test_who_is_silent_makes_room() -> None:
    """Where no more connections can be had, the one that waits longest goes: the next is served."""
    served: Queue[connection.Connection] = Queue()
    with _Crowded(socket.AF_INET, socket.SOCK_STREAM) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        watch = Watch(listening, None, served.put)
        watch.start()
        try:
            with socket.create_connection(listening.getsockname()) as silent:
                silent.sendall(b"GET")
                wait_until(lambda: len(watch._watched) == 1)
                listening.refusals = 1
                with socket.create_connection(listening.getsockname()) as next_one:
                    next_one.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
                    silent.settimeout(60)
                    assert read_to_end(silent) == b""
                    served.get(timeout=60).close()
        finally:
            watch.stop()


def test_unfinished_heads_have_a_room_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many strangers send long heads, they hold so much and no more; a short one stays."""
    room, long = 256 * 1024, 40_000
    monkeypatch.setattr(watch_of_connections, "HEADS_TOGETHER", room)
    served: Queue[connection.Connection] = Queue()
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        contextlib.ExitStack() as stack,
    ):
        watch = Watch(listening, None, served.put)
        watch.start()
        try:
            begin = b"GET / HTTP/1.1\r\nhost: x\r\na: "
            short, *lines = (
                stack.enter_context(socket.create_connection(listening.getsockname()))
                for _ in range(1 + 20)
            )
            short.sendall(begin)
            wait_until(lambda: sum(watch._watched.values()) == len(begin))
            for line in lines:
                line.sendall(begin + b"x" * long)
            wait_until(lambda: len(select.select(lines, [], [], 0)[0]) * long > 20 * long - room)
            assert sum(len(each.held) for each in [*watch._watched]) <= room
            short.sendall(b"b\r\n\r\n")
            served.get(timeout=60).close()
        finally:
            watch.stop()


def test_requests_without_a_thread_have_a_room_together(
    world: World, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Long heads that wait for a busy server: some are told to come again, the others answered."""
    monkeypatch.setattr(server, "THREADS", 1)
    monkeypatch.setattr(server, "HEADS_TOGETHER", 100_000)
    with serve_gateway(world.gateway) as url, contextlib.ExitStack() as stack:
        other = World(world.store, world.gateway, world.key, url)
        first = stack.enter_context(connect(other))
        first.sendall(
            head_of(other, "PUT", f"/{bucket}/k", {"content-length": "5", "expect": "100-continue"})
        )
        assert first.recv(100).startswith(b"HTTP/1.1 100")  # it has the thread
        lines = [stack.enter_context(connect(other)) for _ in range(8)]
        for line in lines:
            line.sendall(b"GET /b/k HTTP/1.1\r\nhost: x\r\na: " + b"x" * 40_000 + b"\r\n\r\n")
        wait_until(lambda: len(select.select(lines, [], [], 0)[0]) == 6)
        first.sendall(b"hello")
        assert read_answer(first).status == 200
        first.close()
        assert sorted(read_answer(line).status for line in lines) == [403] * 2 + [503] * 6


def test_what_nobody_reads_is_not_kept() -> None:
    """Of a request that was refused nothing is held while its client sends on."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname()) as client,
    ):
        refused = connection.Connection(listening.accept()[0], None)
        client.sendall(b"PUT /b/k HTTP/1.1\r\nhost: x\r\n\r\n" + bytes(50_000))
        wait_until(lambda: refused.advance() is connection.Step.READY)
        refused.drain()
        assert not refused.held
        refused.close()


def read_to_end(line: socket.socket) -> bytes:
    said = b""
    with contextlib.suppress(ConnectionResetError):
        while block := line.recv(65536):
            said += block
    return said


def test_a_body_that_nobody_read_is_no_request(world: World) -> None:
    """A refused request ends its connection: what follows might be a request of somebody else."""
    body = PIPELINED * 3
    for framing in (b"content-length: %d\r\n" % len(body), b"transfer-encoding: chunked\r\n"):
        with connect(world) as line:
            line.sendall(b"PUT /b/k HTTP/1.1\r\nhost: x\r\n" + framing + b"\r\n" + body)
            line.shutdown(socket.SHUT_WR)
            said = read_to_end(line)
        assert said.count(b"HTTP/1.1 ") == 1
        assert b"HTTP/1.1 403" in said
        assert b"Connection: close" in said


def test_requests_that_follow_each_other(world: World, bucket: str) -> None:
    """Sent in one go, or after a pause in which nobody works for the client: each is answered."""
    world.project.upload(bucket, "k", b"content")
    get = head_of(world, "GET", f"/{bucket}/k", {})
    head = head_of(world, "HEAD", f"/{bucket}/k", {})
    with connect(world) as line:
        line.sendall(get + head + get)
        said = b""
        while said.count(b"HTTP/1.1 200 OK") < 3 or not said.endswith(b"content"):
            said += line.recv(65536)
        assert said.count(b"content") - said.count(b"content-") == 2  # none behind the HEAD
        time.sleep(2 * LINGER)  # its thread has gone, the connection has not
        line.sendall(get)
        assert read_answer(line).read() == b"content"
    old = get.replace(b"HTTP/1.1", b"HTTP/1.0")
    with connect(world) as line:
        line.sendall(old)
        assert read_to_end(line).endswith(b"content")  # and the connection ends


def test_many_follow_each_other_on_many_connections(
    world: World, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With more clients than threads everybody gets a turn: none is kept for one that is silent."""
    monkeypatch.setattr(server, "THREADS", 4)
    world.project.upload(bucket, "k", b"x")
    with serve_gateway(world.gateway) as url:
        other = World(world.store, world.gateway, world.key, url)
        lines = [connect(other) for _ in range(12)]
        for _ in range(3):
            for line in lines:
                line.sendall(head_of(other, "GET", f"/{bucket}/k", {}))
            for line in lines:
                assert read_answer(line).read() == b"x"
        for line in lines:
            line.close()


def test_who_sends_on_and_on_gets_a_turn_like_others() -> None:
    """What a refused client still sends is taken in bites: the thread waits with others, too."""
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname()) as client,
    ):
        refused = connection.Connection(listening.accept()[0], None)
        refused.drain()
        client.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while True:
                client.send(bytes(1 << 20))
        turns = 0
        while select.select([refused], [], [], 0.2)[0]:
            assert refused.advance() is connection.Step.READ
            turns += 1
        assert turns > 1
        refused.close()
