"""TLS before the gateway: greetings, certificates, and clients that take their time."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from calque.gateway import server
from calque.gateway.http import connection, watch
from calque.gateway.server import _tls_context, serve_gateway
from calque.store.metainfo.tls import ServerCertificate
from calque.values import MIB
from tests.gateway.test_connections import read_to_end
from tests.gateway.test_server import busy, connect, head_of, read_answer, wait_until
from tests.gateway.world import World
from tests.store_client.test_tls import write_pair


def test_what_is_no_tls(world: World, bucket: str, tmp_path: Path) -> None:
    """Plain bytes, and a greeting that stops halfway, hold up nobody else."""
    certificate, key = write_pair(tmp_path, "server")
    with serve_gateway(world.gateway, tls=ServerCertificate(certificate, key)) as url:
        other = World(world.store, world.gateway, world.key, url)
        with connect(other) as plain, connect(other) as half:
            plain.sendall(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            half.sendall(b"\x16\x03\x01\x02\x00\x01")
            other.client(verify=str(certificate)).put_object(Bucket=bucket, Key="k", Body=b"x")
            assert b"HTTP" not in read_to_end(plain)


def test_a_greeting_of_tls_has_a_time(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who stops in the midst of it, or says nothing at all, is hung up on."""
    monkeypatch.setattr(connection, "HEAD_PATIENCE", 2.0)
    certificate, key = write_pair(tmp_path, "server")
    with serve_gateway(world.gateway, tls=ServerCertificate(certificate, key)) as url:
        other = World(world.store, world.gateway, world.key, url)
        with connect(other) as silent, connect(other) as half:
            half.sendall(b"\x16\x03\x01\x02\x00\x01")
            assert read_to_end(silent) == read_to_end(half) == b""


def test_a_certificate_that_is_renewed(world: World, bucket: str, tmp_path: Path) -> None:
    """New connections get the new one, without a restart; the old until both files fit."""
    certificate, key = write_pair(tmp_path, "server")
    new_certificate, new_key = write_pair(tmp_path, "renewed")
    with serve_gateway(world.gateway, tls=ServerCertificate(certificate, key)) as url:
        other = World(world.store, world.gateway, world.key, url)
        before = _certificate_of(other)
        new_certificate.replace(certificate)
        assert _certificate_of(other) == before
        new_key.replace(key)
        assert _certificate_of(other) not in ("", before)
        other.client(verify=str(certificate)).put_object(Bucket=bucket, Key="k", Body=b"x")
        key.unlink()
        other.client(verify=str(certificate)).put_object(Bucket=bucket, Key="k", Body=b"y")


def _certificate_of(world: World) -> str:
    """The certificate that a new connection is shown."""
    host, _, port = world.url.partition("://")[2].partition(":")
    return ssl.get_server_certificate((host, int(port)), timeout=60)


def test_a_greeting_of_tls_where_none_is_spoken(world: World, bucket: str) -> None:
    """It is answered and not waited with: its end would never come. So is a second one."""
    with connect(world) as line:
        line.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")
        assert read_answer(line).status == 400
    with connect(world) as line:
        line.sendall(head_of(world, "PUT", f"/{bucket}/k", {"content-length": "1"}) + b"x")
        with read_answer(line) as answer:
            assert answer.status == 200
        line.sendall(b"\x16\x03\x01")
        assert read_answer(line).status == 400


def test_blocks_are_sent_in_bites(
    world: World, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who reads slowly and steadily has as much time for a bite as for all that TLS is given."""
    given: list[int] = []
    send = ssl.SSLSocket.sendall

    def noted(line: ssl.SSLSocket, data: memoryview, flags: int = 0) -> None:
        given.append(len(data))
        send(line, data, flags)

    world.project.upload(bucket, "large", bytes(MIB))
    certificate, key = write_pair(tmp_path, "server")
    with serve_gateway(world.gateway, tls=ServerCertificate(certificate, key)) as url:
        other = World(world.store, world.gateway, world.key, url)
        client = other.client(verify=str(certificate))
        client.list_buckets()  # greeted
        monkeypatch.setattr(ssl.SSLSocket, "sendall", noted)
        assert client.get_object(Bucket=bucket, Key="large")["Body"].read() == bytes(MIB)
    assert sum(given) > MIB
    slowest = max(given) / connection.PATIENCE
    assert slowest < connection.LEAST_SPEED


@pytest.fixture
def secure(world: World, tmp_path: Path) -> Iterator[World]:
    """The same gateway behind TLS."""
    with serve_gateway(world.gateway, tls=ServerCertificate(*write_pair(tmp_path, "it"))) as url:
        yield World(world.store, world.gateway, world.key, url)


def greet(world: World, line: socket.socket | None = None) -> ssl.SSLSocket:
    """A client that has greeted the server, and believes any."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(line or connect(world))


def test_greetings_and_heads_in_single_bytes(secure: World, bucket: str) -> None:
    """However slowly they come, the request is the same; others are served meanwhile."""
    secure.project.upload(bucket, "k", b"content")
    with contextlib.ExitStack() as stack:
        one, other = socket.socketpair()
        one.settimeout(60)
        slow = stack.enter_context(connect(secure))
        to_server = threading.Thread(target=_pass_on, args=(other, slow, 1))
        to_client = threading.Thread(target=_pass_on, args=(slow, other, 65536))
        for each in (to_server, to_client):
            each.start()
        with greet(secure, one) as line, greet(secure) as quick:
            for byte in head_of(secure, "GET", f"/{bucket}/k", {}):
                line.sendall(bytes([byte]))
            quick.sendall(head_of(secure, "GET", f"/{bucket}/k", {}))
            assert read_answer(quick).read() == b"content"
            assert read_answer(line).read() == b"content"
        to_server.join()
        slow.shutdown(socket.SHUT_RDWR)
        to_client.join()
        other.close()


def _pass_on(source: socket.socket, target: socket.socket, at_once: int) -> None:
    """Bytes from one socket to another, so many at a time."""
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            for start in range(0, len(data), at_once):
                target.sendall(data[start : start + at_once])


def test_many_silent_greetings(secure: World, bucket: str) -> None:
    """Those that say nothing, half a greeting, or no request after it, hold up nobody."""
    with contextlib.ExitStack() as stack:
        for number in range(90):
            line = stack.enter_context(connect(secure))
            if number % 3 == 1:
                line.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(number))
            elif number % 3 == 2:
                stack.enter_context(greet(secure, line)).sendall(b"GET / HT")
        with greet(secure) as line:
            line.sendall(head_of(secure, "PUT", f"/{bucket}/k", {"content-length": "1"}) + b"x")
            assert read_answer(line).status == 200
        wait_until(lambda: not busy(secure))


def test_greetings_under_way_have_a_room_together(
    secure: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many stop within theirs, some of them make room; the silent take none."""
    monkeypatch.setattr(watch, "HEADS_TOGETHER", 4 * connection.GREETING)
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(connect(secure)) for _ in range(10)]
        half = [stack.enter_context(connect(secure)) for _ in range(10)]
        for line in half:
            line.sendall(b"\x16\x03\x01\x02\x00\x01")
        # Three make room for the fifth, and three for the eighth, whichever are seen first.
        wait_until(lambda: len(select.select(half, [], [], 0)[0]) == 6)
        stack.enter_context(greet(secure))
        assert not select.select(silent, [], [], 0)[0]


@pytest.mark.parametrize("how", ["says so", "is cut", "says no more"])
def test_a_body_that_breaks_off(secure: World, bucket: str, how: str) -> None:
    """With a goodbye of TLS, without one, or half-closed: nothing is stored, nothing is left."""
    line = greet(secure)
    size = {"content-length": "90000"}
    line.sendall(head_of(secure, "PUT", f"/{bucket}/k", size) + bytes(70_000))
    wait_until(lambda: bool(busy(secure)))
    if how == "says so":
        with contextlib.suppress(OSError):
            line.unwrap()
    elif how == "says no more":
        socket.socket.shutdown(line, socket.SHUT_WR)
        with contextlib.suppress(ssl.SSLError):  # an alert: a connection should not end so
            assert read_to_end(line) == b""
    line.close()
    wait_until(lambda: not busy(secure))
    assert secure.ask("GET", f"/{bucket}/k").status == 404
    assert list(secure.project.list_pending(bucket)) == []


def test_who_greets_greets_once(tmp_path: Path) -> None:
    """A client cannot ask for greeting after greeting on one connection."""
    context = _tls_context(ServerCertificate(*write_pair(tmp_path, "server")))
    assert context.options & ssl.OP_NO_RENEGOTIATION


def test_a_server_stops_whoever_is_connected(
    world: World, bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Senders and readers in the midst of it, greetings and heads that are not whole, clients that
    linger: they hold it for the time of grace and no longer, and nothing of theirs is left."""
    monkeypatch.setattr(server, "_GRACE", 0.5)
    world.project.upload(bucket, "large", bytes(32 * MIB))
    world.project.upload(bucket, "k", b"before")
    tls = ServerCertificate(*write_pair(tmp_path, "server"))
    with contextlib.ExitStack() as stack:
        for certificate in (None, tls):
            with serve_gateway(world.gateway, tls=certificate) as url:
                other = World(world.store, world.gateway, world.key, url)
                lines = [
                    stack.enter_context(greet(other) if certificate else connect(other))
                    for _ in range(4)
                ]
                reader, writer, half, lingering = lines
                stack.enter_context(connect(other)).sendall(b"\x16\x03\x01")
                reader.sendall(head_of(other, "GET", f"/{bucket}/large", {}))
                assert reader.recv(8) == b"HTTP/1.1"
                size = {"content-length": str(8 * MIB)}
                writer.sendall(head_of(other, "PUT", f"/{bucket}/k", size) + bytes(3 * MIB))
                half.sendall(b"GET / HTTP/1.1\r\nhost")
                lingering.sendall(head_of(other, "GET", f"/{bucket}/k", {}))
                assert read_answer(lingering).read() == b"before"
                wait_until(lambda: len(busy(world)) >= 2)
            assert busy(world) == []
            for line in (writer, half, lingering):
                assert read_to_end(line) == b""
            assert list(world.project.list_pending(bucket)) == []
    assert world.project.download(bucket, "k").read() == b"before"
