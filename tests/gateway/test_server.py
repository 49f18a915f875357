"""The gateway behind HTTP: what goes over the wire, and clients that misbehave."""

from __future__ import annotations

import hashlib
import http.client
import os
import resource
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from calque.gateway import server
from calque.gateway.keys import NewKey
from calque.gateway.server import serve_gateway
from calque.operator.services.s3.signing import Keys, Signer
from calque.store.metainfo.tls import ServerCertificate
from calque.values import MIB
from tests.gateway.world import REGION, World
from tests.store_client.test_tls import write_pair

PATIENCE = 60.0
"""Seconds within which what should happen happens, on the slowest machine."""


def wait_until(happened: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def head_of(
    world: World,
    method: str,
    path: str,
    headers: dict[str, str],
    *,
    payload: str = "UNSIGNED-PAYLOAD",
    key: NewKey | None = None,
) -> bytes:
    """The head of a signed request, as bytes for a socket."""
    host = world.url.partition("://")[2]
    key = key or world.key
    sent = Signer(REGION).sign(
        Keys(key.access_key_id, key.secret_access_key),
        method,
        path,
        [],
        {"host": host, **headers},
        payload,
    )
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items())]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def connect(world: World) -> socket.socket:
    host, _, port = world.url.partition("://")[2].partition(":")
    made = socket.create_connection((host, int(port)))
    made.settimeout(PATIENCE)
    return made


def read_answer(connection: socket.socket) -> http.client.HTTPResponse:
    answer = http.client.HTTPResponse(connection)
    answer.begin()
    return answer


def test_leave_to_send_comes_after_the_head_was_authorised(world: World, bucket: str) -> None:
    """100 Continue for who may write; a refused PUT of 5 GB is refused without a byte of it."""
    with connect(world) as line:
        asked = {"content-length": "5", "expect": "100-continue"}
        line.sendall(head_of(world, "PUT", f"/{bucket}/k", asked))
        assert line.recv(100).startswith(b"HTTP/1.1 100 Continue\r\n")
        line.sendall(b"hello")
        assert read_answer(line).status == 200
    large = {"content-length": str(5 * 10**9), "expect": "100-continue"}
    reader = world.make_key(write=False)
    small = large | {"content-length": "5"}
    for key, path, asked, status in (
        (None, f"/not-{bucket}/k", large, 404),
        (reader, f"/{bucket}/k", large, 403),
        (reader, f"/{bucket}/k", small, 403),
        (NewKey("CQNOBODY", "x", ""), f"/{bucket}/k", large, 403),
    ):
        with connect(world) as line:
            line.sendall(head_of(world, "PUT", path, asked, key=key))
            answer = read_answer(line)
            assert answer.status == status
            assert answer.headers["Connection"] == "close"


def test_chunked_transfer_without_a_length(world: World, bucket: str) -> None:
    """As boto3 sends over https and pyarrow always: chunks in chunks, the size in a header."""
    inner = b"5\r\nhello\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n"
    outer = b"".join(b"1\r\n%c\r\n" % byte for byte in inner) + b"0\r\n\r\n"
    headers = {
        "transfer-encoding": "chunked",
        "content-encoding": "aws-chunked",
        "x-amz-trailer": "x-amz-checksum-crc32",
    }
    payload = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
    for length, status in (({"x-amz-decoded-content-length": "5"}, 200), ({}, 411)):
        with connect(world) as line:
            head = head_of(world, "PUT", f"/{bucket}/k", headers | length, payload=payload)
            line.sendall(head + outer)
            assert read_answer(line).status == status
    assert world.project.download(bucket, "k").read() == b"hello"


def test_a_client_that_vanishes_leaves_nothing(world: World, bucket: str) -> None:
    """Neither an object nor an upload under way; what was there before is there still."""
    world.project.upload(bucket, "k", b"before")
    for sent in (b"", b"x" * 100, b"x" * 2_000_000):
        line = connect(world)
        line.sendall(head_of(world, "PUT", f"/{bucket}/k", {"content-length": "4000000"}) + sent)
        line.close()
    wait_until(lambda: not list(world.project.list_pending(bucket)) and not busy(world))
    assert world.project.download(bucket, "k").read() == b"before"
    assert world.ask("GET", f"/{bucket}/k").body == b"before"


def busy(world: World) -> list[str]:
    """Threads that carry out a request now."""
    return [
        thread.name
        for thread in threading.enumerate()
        if thread.name.startswith("calque-s3_") and is_working(thread)
    ]


def is_working(thread: threading.Thread) -> bool:
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None:
        if frame.f_code.co_name == "run_exchange":
            return True
        frame = frame.f_back
    return False


def test_a_client_that_stops_reading_stops_the_reading(world: World, bucket: str) -> None:
    """Blocks are read from the nodes as they are taken; when the client goes, no more are."""
    size = 32 * MIB
    world.project.upload(bucket, "large", bytes(size))
    before = read_bytes()
    line = connect(world)
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
    line.sendall(head_of(world, "GET", f"/{bucket}/large", {}))
    assert read_answer(line).status == 200
    wait_until(lambda: is_still(read_bytes))
    assert read_bytes() - before < size / 2
    line.close()
    wait_until(lambda: not busy(world))
    assert read_bytes() - before < size


def read_bytes() -> int:
    """Bytes that this process has read from files and sockets."""
    for line in Path("/proc/self/io").read_text().splitlines():
        if line.startswith("rchar"):
            return int(line.split()[1])
    raise AssertionError


def is_still(count: Callable[[], int]) -> bool:
    before = count()
    time.sleep(0.3)
    return count() - before < MIB


def test_many_connections(world: World, bucket: str) -> None:
    """Connections that say nothing take no thread: the next request is answered at once."""
    world.project.upload(bucket, "k", b"x")
    room = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    idle = [connect(world) for _ in range(min(400, room // 4))]
    half = head_of(world, "GET", f"/{bucket}/k", {})
    try:
        for line in idle[::2]:
            line.sendall(half[:40])
        assert world.client().get_object(Bucket=bucket, Key="k")["Body"].read() == b"x"
    finally:
        for line in idle:
            line.close()


def test_a_silent_client_does_not_hold_the_server(
    world: World, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that is told to stop stops, though a client never sends the rest of its body."""
    monkeypatch.setattr(server, "_GRACE", 0.5)
    with serve_gateway(world.gateway) as url:
        other = World(world.store, world.gateway, world.key, url)
        line = connect(other)
        line.sendall(head_of(other, "PUT", f"/{bucket}/k", {"content-length": "9000000"}) + b"x")
        reader = connect(other)
        reader.sendall(head_of(other, "GET", f"/{bucket}/none", {}))
        assert read_answer(reader).status == 404
    line.close()
    reader.close()
    wait_until(lambda: not list(world.project.list_pending(bucket)))
    assert world.ask("GET", f"/{bucket}/k").status == 404


def test_who_is_served_while_a_server_stops(
    world: World, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A request under way ends, and its client is told to go; whoever comes new is refused."""
    monkeypatch.setattr(server, "_GRACE", PATIENCE)
    stack = ExitStack()
    url = stack.enter_context(serve_gateway(world.gateway))
    other = World(world.store, world.gateway, world.key, url)
    headers = {"content-length": "5", "expect": "100-continue"}
    with connect(other) as line:
        line.sendall(head_of(other, "PUT", f"/{bucket}/k", headers))
        assert line.recv(100).startswith(b"HTTP/1.1 100")
        stopping = threading.Thread(target=stack.close)
        stopping.start()
        wait_until(lambda: _is_refused(other))
        line.sendall(b"hello")
        answer = read_answer(line)
        assert (answer.status, answer.getheader("connection")) == (200, "close")
        stopping.join()
    assert world.project.download(bucket, "k").read() == b"hello"


def test_an_answer_is_not_taken_back_by_a_server_that_stops(
    world: World, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that has sent more than the server reads any more still gets its answer whole."""
    monkeypatch.setattr(server, "_GRACE", PATIENCE)
    size = 32 * MIB
    world.project.upload(bucket, "large", bytes(size))
    stack = ExitStack()
    url = stack.enter_context(serve_gateway(world.gateway))
    other = World(world.store, world.gateway, world.key, url)
    with connect(other) as line:
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        get = head_of(other, "GET", f"/{bucket}/large", {})
        line.sendall(get)
        answer = read_answer(line)
        line.sendall(get)
        stopping = threading.Thread(target=stack.close)
        stopping.start()
        wait_until(lambda: _is_refused(other))
        assert len(answer.read()) == size
        answer.close()
    stopping.join()


def test_who_waits_for_a_thread_of_a_server_that_stops(
    world: World, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests that had no thread when the time of grace was over are not begun after it."""
    monkeypatch.setattr(server, "_GRACE", 0.5)
    monkeypatch.setattr(server, "THREADS", 1)
    with ExitStack() as stack:
        with serve_gateway(world.gateway) as url:
            other = World(world.store, world.gateway, world.key, url)
            lines = [stack.enter_context(connect(other)) for _ in range(5)]
            for line in lines:
                head = head_of(other, "PUT", f"/{bucket}/k", {"content-length": "9000000"})
                line.sendall(head + b"x")
            wait_until(lambda: bool(busy(other)))
        for line in lines:
            with suppress(ConnectionResetError):
                assert line.recv(100) == b""
    wait_until(lambda: not busy(other))
    assert world.ask("GET", f"/{bucket}/k").status == 404


def _is_refused(world: World) -> bool:
    try:
        connect(world).close()
    except (ConnectionRefusedError, ConnectionResetError):  # it was in the queue of a closed port
        return True
    return False


def test_names_of_buckets_in_the_host(
    world: World, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BUCKET.localhost is that bucket, for boto3 with virtual addressing."""
    resolve = socket.getaddrinfo

    def find(host: Any, *rest: Any, **more: Any) -> Any:
        """Names below localhost are this machine, wherever the tests run."""
        return resolve("127.0.0.1" if str(host).endswith("localhost") else host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", find)
    port = world.url.rpartition(":")[2]
    other = World(world.store, world.gateway, world.key, f"http://localhost:{port}")
    client = other.client(s3={"addressing_style": "virtual"})
    client.put_object(Bucket=bucket, Key="a/b", Body=b"x")
    assert client.meta.endpoint_url.startswith("http://localhost")
    assert client.get_object(Bucket=bucket, Key="a/b")["Body"].read() == b"x"
    answer = world.ask("GET", "/a/b", headers={"host": f"{bucket}.localhost:{port}"})
    assert answer.body == b"x"


@pytest.fixture
def secure(world: World, tmp_path: Path) -> Iterator[tuple[World, str]]:
    """The same gateway behind TLS, and the file of its authority."""
    certificate, key = write_pair(tmp_path, "server")
    with serve_gateway(world.gateway, tls=ServerCertificate(certificate, key)) as url:
        yield World(world.store, world.gateway, world.key, url), str(certificate)


def test_tls(secure: tuple[World, str], bucket: str) -> None:
    """Over https boto3 sends chunked trailers without a length, and all is well."""
    world, authority = secure
    assert world.url.startswith("https://")
    client = world.client(verify=authority)
    data = os.urandom(300_000)
    client.put_object(Bucket=bucket, Key="k", Body=data)
    got = client.get_object(Bucket=bucket, Key="k")
    assert (got["Body"].read(), got["ETag"]) == (data, f'"{hashlib.md5(data).hexdigest()}"')


LIMITED = """
import sys, tempfile, threading
from contextlib import ExitStack, suppress
from pathlib import Path

import boto3
from botocore.config import Config

from tests.gateway.world import gateway_world
from tests.peak_memory import peak_mebibytes

MIB = 1 << 20
size = int(sys.argv[1]) * MIB


class Zeros:
    def __init__(self): self.left = size
    def read(self, most=-1):
        count = self.left if most < 0 else min(most, self.left)
        self.left -= count
        return bytes(count)


with tempfile.TemporaryDirectory(dir=sys.argv[2]) as folder, gateway_world(Path(folder) / "d") as w:
    client = w.client(request_checksum_calculation="when_required", signature_version="s3v4")
    w.project.create_bucket("box")
    import http.client
    url = client.generate_presigned_url("put_object", Params={"Bucket": "box", "Key": "k"})
    host = w.url.partition("://")[2]
    def put(length):
        line = http.client.HTTPConnection(host)
        line.putrequest("PUT", url[len(w.url):])
        line.putheader("Content-Length", str(length))
        line.endheaders()
        for _ in range(length // MIB):
            line.send(bytes(MIB))
        assert line.getresponse().status == 200
        line.close()
    def get():
        line = http.client.HTTPConnection(host)
        link = client.generate_presigned_url("get_object", Params={"Bucket": "box", "Key": "k"})
        line.request("GET", link[len(w.url):])
        answer, found = line.getresponse(), 0
        while block := answer.read(MIB):
            found += len(block)
        line.close()
        return found
    put(8 * MIB)
    assert get() == 8 * MIB
    before = peak_mebibytes()
    put(size)
    assert get() == size
    print(peak_mebibytes() - before)
"""


def grown(megabytes: int, folder: Path) -> int:
    """MiB by which a process grew that put and got an object of this size."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(LIMITED), str(megabytes), str(folder)],
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1])


def test_memory_does_not_depend_on_size(tmp_path: Path) -> None:
    """A PUT and a GET of 128 MiB take some MiB more than those of 8 MiB."""
    assert grown(128, tmp_path) < 100


@pytest.mark.soak
def test_memory_of_a_gigabyte(tmp_path: Path) -> None:
    """The same for 1 GiB."""
    assert grown(1024, tmp_path) < 100


@pytest.mark.soak
def test_ten_thousand_connections(world: World, bucket: str) -> None:
    """Ten thousand at once, or as many as this machine lets a process have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    idle: list[Any] = []
    try:
        idle += [connect(world) for _ in range(min(10_000, hard // 2 - 200))]
        world.project.upload(bucket, "k", b"x")
        assert world.client().get_object(Bucket=bucket, Key="k")["Body"].read() == b"x"
    finally:
        for line in idle:
            line.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
