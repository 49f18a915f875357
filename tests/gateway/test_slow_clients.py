"""Clients that have every right, and take all the time in the world."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from contextlib import ExitStack

import pytest

from calque.gateway import server
from calque.gateway.http import connection
from calque.gateway.server import serve_gateway
from calque.values import MIB
from tests.gateway.test_given_up_requests import has_waiting, somebody_writes
from tests.gateway.test_server import connect, head_of, read_answer, wait_until
from tests.gateway.world import World


def test_who_dawdles_makes_room(world: World, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Readers that stop reading hold every thread: one of them goes when somebody else comes."""
    monkeypatch.setattr(server, "THREADS", 2)
    monkeypatch.setattr(connection, "DAWDLES", 0.5)
    size = 48 * MIB
    world.project.upload(bucket, "large", bytes(size))
    world.project.upload(bucket, "small", b"x")
    with serve_gateway(world.gateway) as url, ExitStack() as stack:
        other = World(world.store, world.gateway, world.key, url)
        readers = [stack.enter_context(connect(other)) for _ in range(2)]
        for line in readers:
            line.sendall(head_of(other, "GET", f"/{bucket}/large", {"connection": "close"}))
            assert line.recv(8) == b"HTTP/1.1"
        # Slow is who has moved less than this in its time; both have more in their buffers.
        monkeypatch.setattr(connection, "LEAST_SPEED", float(size))
        time.sleep(1)
        with connect(other) as next_one:
            next_one.sendall(head_of(other, "GET", f"/{bucket}/small", {}))
            assert read_answer(next_one).read() == b"x"
        whole = [_count_to_end(line) >= size for line in readers]
        assert sorted(whole) == [False, True]


def _count_to_end(line: socket.socket) -> int:
    """Bytes that still come; they are many."""
    count = 0
    with contextlib.suppress(ConnectionResetError):
        while block := line.recv(MIB):
            count += len(block)
    return count


def test_who_waits_for_the_store_does_not_dawdle(
    world: World, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request that the store keeps waiting is finished, though others wait for its thread."""
    monkeypatch.setattr(server, "THREADS", 1)
    monkeypatch.setattr(connection, "DAWDLES", 0.0)
    with serve_gateway(world.gateway) as url, ExitStack() as stack:
        other = World(world.store, world.gateway, world.key, url)
        writer, next_one = (stack.enter_context(connect(other)) for _ in range(2))
        shared = world.store.endpoint.database._shared
        assert shared is not None
        with somebody_writes(world):
            head = head_of(other, "PUT", f"/{bucket}/k", {"content-length": "5"})
            writer.sendall(head + b"hello")
            wait_until(lambda: has_waiting(shared, 1))
            next_one.sendall(head_of(other, "GET", f"/{bucket}/k", {}))
            time.sleep(1)
        assert read_answer(writer).status == 200
        writer.close()
        assert read_answer(next_one).read() == b"hello"


def test_who_waits_already_gets_the_room_too(
    world: World, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that came before the readers were known as slow are served, each; nobody comes after
    them."""
    monkeypatch.setattr(server, "THREADS", 2)
    monkeypatch.setattr(connection, "DAWDLES", 3.0)
    size = 48 * MIB
    world.project.upload(bucket, "large", bytes(size))
    world.project.upload(bucket, "small", b"x")
    with serve_gateway(world.gateway) as url, ExitStack() as stack:
        other = World(world.store, world.gateway, world.key, url)
        readers = [stack.enter_context(connect(other)) for _ in range(2)]
        for line in readers:
            line.sendall(head_of(other, "GET", f"/{bucket}/large", {"connection": "close"}))
            assert line.recv(8) == b"HTTP/1.1"
        monkeypatch.setattr(connection, "LEAST_SPEED", float(size))
        waiting = [stack.enter_context(connect(other)) for _ in range(2)]
        for line in waiting:
            line.sendall(head_of(other, "GET", f"/{bucket}/small", {"connection": "close"}))
        assert [read_answer(line).read() for line in waiting] == [b"x", b"x"]


def test_who_sends_slowly_and_steadily_does_not_dawdle(
    world: World, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes count that came, though the block they belong to is not whole."""
    monkeypatch.setattr(server, "THREADS", 1)
    monkeypatch.setattr(connection, "DAWDLES", 0.5)
    monkeypatch.setattr(connection, "LEAST_SPEED", 2048.0)
    world.project.upload(bucket, "small", b"x")
    with serve_gateway(world.gateway) as url, ExitStack() as stack:
        other = World(world.store, world.gateway, world.key, url)
        writer, next_one = (stack.enter_context(connect(other)) for _ in range(2))
        size = 300_000
        writer.sendall(head_of(other, "PUT", f"/{bucket}/k", {"content-length": str(size)}))
        for turn in range(15):
            writer.sendall(bytes(2048))
            time.sleep(0.2)
            if turn == 5:
                next_one.sendall(head_of(other, "GET", f"/{bucket}/small", {}))
        writer.sendall(bytes(size - 15 * 2048))
        assert read_answer(writer).status == 200
        writer.close()
        assert read_answer(next_one).read() == b"x"


def test_who_reads_slowly_and_steadily_does_not_dawdle(monkeypatch: pytest.MonkeyPatch) -> None:
    """The block counts that is being sent: nobody knows how much of it the client has taken."""
    monkeypatch.setattr(connection, "DAWDLES", 0.0)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        reader = socket.create_connection(listening.getsockname())
        sending = connection.Connection(listening.accept()[0], None)
        sending.work()
        block = bytes(16 * MIB)  # more than both sides have buffers for
        thread = threading.Thread(target=lambda: sending.send(block))
        thread.start()
        wait_until(lambda: sending._waits_for_client)
        monkeypatch.setattr(connection, "LEAST_SPEED", 1.0)
        assert not sending.dawdles()
        monkeypatch.setattr(connection, "LEAST_SPEED", float("inf"))
        assert sending.dawdles()
        with reader:
            left = len(block)
            while left:
                left -= len(reader.recv(MIB))
        thread.join()
        assert not sending.dawdles()
        sending.close()
