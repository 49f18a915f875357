"""The store over gRPC, in a process of its own: the same client, the same results."""

from __future__ import annotations

import json
import os
import signal
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import grpc
import pytest

from calque.errors import (
    ConditionNotMatch,
    InvalidInput,
    NotFound,
    PermissionDenied,
    Unavailable,
)
from calque.operator import Operator
from calque.store.open_project import open_project
from calque.store.project import Project
from calque.store.relay.client import RelayedNode
from calque.store.uplink.encryption.access import Prefix
from calque.store.uplink.encryption.blocks import EncryptionParameters
from calque.store.uplink.grant import AccessGrant
from tests.program import COMMAND, Program, run_program
from tests.store_client.world import SMALL

SIZES = [0, 10, 65, 3000, 200_000, 3_000_000]
WIRED = replace(SMALL, segment_size=800_000, encryption=EncryptionParameters())


@dataclass
class Server:
    """A running ``calque serve``."""

    process: Program
    address: str
    access: str
    folder: Path
    metrics: str | None

    def open(self, access: str | AccessGrant | None = None) -> Project:
        return open_project(self.address, access=access or self.access, settings=WIRED)


def start(folder: Path, *options: str) -> Server:
    process = Program(COMMAND, "serve", folder, "--port", "0", "--json", *options)
    lines = iter(process.stdout.readline, "")
    said = ""
    for line in lines:
        said += line
        if line.startswith("}"):
            break
    told = json.loads(said)
    return Server(process, told["address"], told["access"], folder, told["metrics"])


def stop(server: Server, number: signal.Signals = signal.SIGINT) -> int:
    server.process.send_signal(number)
    code = server.process.wait()
    server.process.close()
    return code


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("served") / "data"
    run_program(COMMAND, "store", "init", folder, "--pieces", "2/3", check=True)
    running = start(folder)
    assert running.access is None
    shown = run_program(COMMAND, "store", "access", folder, check=True)
    running.access = shown.stdout.strip()
    yield running
    assert stop(running) == 0
    checked = run_program(COMMAND, "store", "fsck", folder, "--young", "--json")
    assert (checked.returncode, json.loads(checked.stdout)) == (0, [])


@pytest.fixture
def project(server: Server) -> Iterator[Project]:
    with server.open() as opened:
        opened.create_bucket("wired", exist_ok=True)
        yield opened


@pytest.mark.parametrize("size", SIZES)
def test_everything_over_the_wire(project: Project, size: int) -> None:
    """Upload, ranges, copy, delete of the original, move: the bytes are right."""
    content = os.urandom(size)
    made = project.upload("wired", f"a/{size}", content, metadata={"m": "ü"})
    assert project.download("wired", f"a/{size}").read() == content
    copy = project.copy_object("wired", f"a/{size}", "wired", f"b/{size}")
    assert copy.etag != made.etag
    project.delete_object("wired", f"a/{size}")
    part = project.download("wired", f"b/{size}", offset=size // 3, length=1000).read()
    assert part == content[size // 3 : size // 3 + 1000]
    project.move_object("wired", f"b/{size}", "wired", f"c/{size}")
    download = project.download("wired", f"c/{size}")
    assert (download.read(), dict(download.info.metadata)) == (content, {"m": "ü"})
    assert f"c/{size}" in [entry.key for entry in project.list_objects("wired", "c/")]


def test_multipart_over_the_wire(project: Project) -> None:
    """Parts out of order, with a gap."""
    upload = project.begin_multipart("wired", "parts")
    upload.upload_part(5, b"second" * 500)
    upload.upload_part(2, b"first" * 500)
    upload.commit()
    assert project.download("wired", "parts").read() == b"first" * 500 + b"second" * 500


def test_errors_keep_their_kind(project: Project, server: Server) -> None:
    """An error is the same one as in process."""
    with pytest.raises(NotFound, match="'missing'"):
        project.stat("wired", "missing")
    with pytest.raises(NotFound, match="nowhere"):
        project.upload("nowhere-at-all", "k", b"x")
    with pytest.raises(ConditionNotMatch):
        project.upload("wired", "k", b"x", if_match="00" * 16)
    narrow = project.access.restrict(Prefix("wired", "in/"), write=False)
    with server.open(narrow) as limited, pytest.raises(PermissionDenied):
        limited.upload("wired", "in/k", b"x" * 3000)


def test_a_foreign_access_is_refused(server: Server, tmp_path: Path) -> None:
    """The grant of another store opens nothing here, neither rows nor pieces."""
    with open_project(tmp_path / "other") as other:
        foreign = other.access
    with server.open(foreign) as stranger, pytest.raises(PermissionDenied):
        stranger.list_buckets().__next__()
    with grpc.insecure_channel(server.address.removeprefix("grpc://")) as channel:
        node = json.loads((server.folder / "store.json").read_text())["nodes"][0]
        relayed = RelayedNode(bytes.fromhex(node["id"]), channel, bytes(foreign.api_key))
        with pytest.raises(PermissionDenied):
            relayed.write(bytes(32), [b"x"], None)
        with pytest.raises(PermissionDenied):
            list(relayed.read(bytes(32), 0, 10))


def test_the_operator_over_the_wire(server: Server, project: Project) -> None:
    """calque:// reaches a served store; a copy moves no byte through this process."""
    with Operator.from_uri("calque://wired/op", project=server.address, access=server.access) as op:
        op.write("a", b"bytes" * 5000, content_type="text/plain", user={"k": "v"})
        copied = op.copy("a", "b")
        assert (copied.content_type, dict(copied.user)) == ("text/plain", {"k": "v"})
        op.delete("a")
        assert op.read("b") == b"bytes" * 5000
        assert [entry.path for entry in op.list()] == ["b"]


def test_an_access_grant_is_needed(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a grant the error says how to give one; the environment is one way."""
    monkeypatch.delenv("CALQUE_ACCESS", raising=False)
    with pytest.raises(InvalidInput, match="access grant") as caught:
        open_project(server.address)
    assert "CALQUE_ACCESS" in str(caught.value)
    monkeypatch.setenv("CALQUE_ACCESS", server.access)
    open_project(server.address).close()


def test_a_server_that_is_gone(server: Server) -> None:
    """Nobody at the address: Unavailable, which may be retried."""
    with open_project("grpc://127.0.0.1:1", access=server.access) as project:
        with pytest.raises(Unavailable) as caught:
            project.stat("wired", "k")
        assert caught.value.retryable


def test_a_new_store_shows_its_access_once(tmp_path: Path) -> None:
    """The first serve prints the grant, the second does not but counts; both end cleanly."""
    first = start(tmp_path / "fresh")
    with open_project(first.address, access=first.access) as project:
        project.create_bucket("bucket")
        project.upload("bucket", "k", b"kept")
    assert AccessGrant.parse(first.access).address == first.address
    assert stop(first, signal.SIGTERM) == 0
    second = start(tmp_path / "fresh", "--metrics-port", "0")
    assert second.access is None
    with open_project(second.address, access=first.access) as project:
        assert project.download("bucket", "k").read() == b"kept"
        project.copy_object("bucket", "k", "bucket", "copy")
    assert second.metrics is not None
    with urllib.request.urlopen(second.metrics) as answer:
        counted = answer.read().decode()
    assert "req_copy_object_total 1.0" in counted
    assert stop(second) == 0
