"""TLS before the gateway: greetings, certificates, and clients that take their time."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from calque.gateway.http import connection
from calque.gateway.server import serve_gateway
from calque.store.metainfo.tls import ServerCertificate
from calque.values import MIB
from tests.gateway.test_connections import read_to_end
from tests.gateway.test_server import connect, head_of, read_answer
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
