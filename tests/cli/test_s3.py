"""The object commands against a real S3 server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from calque.operator import Operator
from tests.cli.conftest import Calque, Spawn
from tests.command import run_command
from tests.operator.services.s3.server import make_bucket
from tests.servers.proxy import Fault, FaultProxy, Reply
from tests.servers.seaweedfs import S3Server

MIB = 1024 * 1024
OPTIONS = ("-o", f"threshold={6 * MIB}", "-o", f"part_size={5 * MIB}", "-o", "key_order=false")


@pytest.fixture(scope="module")
def server(seaweed: S3Server) -> S3Server:
    """A server with a bucket for these tests."""
    make_bucket(seaweed, "cli")
    return seaweed


@pytest.fixture(scope="module")
def big(server: S3Server) -> bytes:
    """The bytes of ``s3://cli/big``, an object of four parts."""
    content = os.urandom(16 * MIB)
    with Operator.from_uri(
        "s3://cli",
        endpoint_url=server.endpoint,
        region=server.region,
        access_key_id=server.access_key,
        secret_access_key=server.secret_key,
    ) as op:
        op.write("big", content)
    return content


@pytest.fixture
def proxy(server: S3Server, environment: dict[str, str]) -> Iterator[FaultProxy]:
    """The server as the commands reach it, with faults to be added."""
    with FaultProxy(server.endpoint) as running:
        environment |= {**server.environment, "AWS_ENDPOINT_URL_S3": running.endpoint}
        yield running


def test_there_and_back(calque: Calque, folder: Path, proxy: FaultProxy) -> None:
    """Up, across inside the service in parts, down: the same bytes; the report says which way."""
    content = os.urandom(12 * MIB)
    (folder / "up").write_bytes(content)
    up = calque("cp", "up", "s3://cli/", "--json", *OPTIONS)
    assert json.loads(up.stdout)["route"] == "through the client", up.stderr
    across = calque("cp", "s3://cli/up", "s3://cli/odd name+%/", "--json", "--verify", *OPTIONS)
    report = json.loads(across.stdout)
    assert report["route"] == "server-side"
    assert report["verified"]
    down = calque("cp", "s3://cli/odd name+%/up", "down", "--json", *OPTIONS)
    assert json.loads(down.stdout)["bytes"] == len(content)
    assert (folder / "down").read_bytes() == content


def test_the_other_commands(calque: Calque, folder: Path, proxy: FaultProxy, big: bytes) -> None:
    """ls, stat, cat, mv, rm on a service are what they are on files."""
    shown = json.loads(calque("ls", "s3://cli/big", "--json", *OPTIONS).stdout)
    assert [entry["size"] for entry in shown] == [len(big)]
    assert json.loads(calque("stat", "s3://cli/big", "--json", *OPTIONS).stdout)["etag"]
    (folder / "text").write_text("some text")
    calque("cp", "text", "s3://cli/text", *OPTIONS)
    assert calque("cat", "s3://cli/text", "--offset", "5", *OPTIONS).stdout == "text"
    assert calque("mv", "s3://cli/text", "s3://cli/moved", *OPTIONS).returncode == 0
    assert calque("stat", "s3://cli/text", *OPTIONS).returncode == 1
    assert calque("rm", "s3://cli/moved", *OPTIONS).returncode == 0
    assert calque("cat", "s3://cli/moved", *OPTIONS).returncode == 1


def _held_midway(
    spawn: Spawn, proxy: FaultProxy, *options: str
) -> tuple[subprocess.Popen[str], threading.Event]:
    """A copy whose third part does not get its answer before the event is set."""
    reached, go = threading.Event(), threading.Event()

    def hold(_: object) -> None:
        reached.set()
        go.wait(100)

    proxy.add(Fault(method="PUT", contains="partNumber", after=2, hook=hold))
    process = spawn("cp", "s3://cli/big", "s3://cli/copy", "-c", "1", *options, *OPTIONS)
    assert reached.wait(100)
    return process, go


def _stop(process: subprocess.Popen[str], go: threading.Event) -> str:
    process.send_signal(signal.SIGINT)
    go.set()
    return process.communicate(timeout=150)[1]


def test_stopped_and_resumed(calque: Calque, spawn: Spawn, proxy: FaultProxy, big: bytes) -> None:
    """Ctrl-C keeps the upload; the next run copies only the parts that are missing."""
    said = _stop(*_held_midway(spawn, proxy, "--resume"))
    assert "go on with: calque cp" in said
    proxy.reset()
    done = calque("cp", "s3://cli/big", "s3://cli/copy", "-c", "1", "--resume", "--json", *OPTIONS)
    report = json.loads(done.stdout)
    assert report["resumed_from"] >= 10 * MIB
    assert report["bytes"] == len(big)
    assert 1 <= proxy.count("PUT", "partNumber") <= 2
    assert json.loads(calque("sweep", "s3://cli/", "--older-than", "0s", "--json").stdout) == []


def test_stopped_without_resume(
    calque: Calque, spawn: Spawn, proxy: FaultProxy, big: bytes
) -> None:
    """Ctrl-C aborts the upload: nothing is left on the server."""
    process, go = _held_midway(spawn, proxy)
    _stop(process, go)
    assert process.returncode == 130
    assert json.loads(calque("sweep", "s3://cli/", "--older-than", "0s", "--json").stdout) == []


def test_killed_then_swept(calque: Calque, spawn: Spawn, proxy: FaultProxy, big: bytes) -> None:
    """kill -9 leaves an upload that a sweep finds by our marker and removes."""
    process, go = _held_midway(spawn, proxy)
    process.kill()
    process.communicate(timeout=150)
    go.set()
    assert json.loads(calque("sweep", "s3://cli/", "--json").stdout) == [], "it is too young"
    (swept,) = json.loads(calque("sweep", "s3://cli/", "--older-than", "0s", "--json").stdout)
    assert swept["kind"] == "multipart upload"
    assert swept["outcome"] == "removed"
    assert json.loads(calque("sweep", "s3://cli/", "--older-than", "0s", "--json").stdout) == []


def test_faults_on_the_way_are_outlived(calque: Calque, proxy: FaultProxy, big: bytes) -> None:
    """A part refused twice is sent again; the copy is right."""
    busy = Reply(503, {"Content-Type": "application/xml"}, b"<Error><Code>SlowDown</Code></Error>")
    proxy.add(Fault(method="PUT", contains="partNumber=2", times=2, reply=busy))
    done = calque("cp", "s3://cli/big", "s3://cli/again", "--verify", "--json", *OPTIONS)
    assert json.loads(done.stdout)["bytes"] == len(big), done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("cp", "s3://cli/nope", "s3://cli/x"), "nope"),
        (("cp", "s3://no-such-bucket-here/x", "s3://cli/x"), "no-such-bucket-here"),
        (("cp", "s3://cli/big", "s3://cli/big"), "itself"),
        (("cp", "s3://cli/", "s3://cli/x"), "directory"),
        (("cp", "s3://cli/big", "memory://x/y"), "--stream"),
        (("ls", "s3://cli/", "-o", "color=red"), "color"),
        (("ls", "s3://cli/", "-o", "region"), "NAME=VALUE"),
        (("ls", "s3://cli/", "-o", "secret_access_key=x"), "environment"),
    ],
)
def test_wrong_requests(
    calque: Calque,
    folder: Path,
    proxy: FaultProxy,
    big: bytes,
    arguments: tuple[str, ...],
    said: str,
) -> None:
    """Each its own clear message; no traceback, no secret."""
    (folder / "big").write_bytes(b"local")
    done = calque(*arguments)
    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert "calque-test-secret" not in done.stderr + done.stdout


def test_an_endpoint_that_is_not_there(calque: Calque, environment: dict[str, str]) -> None:
    """It is named, and how often it was tried."""
    environment |= {
        "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9",
        "AWS_ACCESS_KEY_ID": "x",
        "AWS_SECRET_ACCESS_KEY": "y",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    done = calque("stat", "s3://cli/x")
    assert done.returncode == 1
    assert "127.0.0.1:9" in done.stderr
    assert "Traceback" not in done.stderr


EXPIRED = Reply(
    400, {}, b"<Error><Code>ExpiredToken</Code><Message>The token has expired.</Message></Error>"
)


def test_credentials_that_expire_midway(
    calque: Calque, proxy: FaultProxy, big: bytes, environment: dict[str, str]
) -> None:
    """The checkpoint and the parts are kept: with new credentials only the rest is copied."""
    command = ("cp", "s3://cli/big", "s3://cli/expired", "-c", "1", "--resume", *OPTIONS)
    # The marker and the first parts pass.
    proxy.add(Fault(method="PUT", contains="partNumber", times=3))
    proxy.add(Fault(times=None, contains="partNumber", reply=EXPIRED))
    proxy.add(Fault(method="DELETE", times=None, reply=EXPIRED))
    stopped = calque(*command)
    assert stopped.returncode != 0
    assert "with new credentials go on with: calque cp" in stopped.stderr
    assert proxy.count("DELETE") == 0
    proxy.reset()
    done = calque(*command, "--json")
    report = json.loads(done.stdout)
    assert report["resumed_from"] >= 5 * MIB
    assert report["bytes"] == len(big)
    assert proxy.count("PUT", "partNumber") <= 2
    assert json.loads(calque("sweep", "s3://cli/", "--older-than", "0s", "--json").stdout) == []


@pytest.mark.parametrize(("source", "target"), [("x//y", "x/y"), ("/lead", "lead")])
def test_mv_between_two_names_of_one_object(
    calque: Calque, folder: Path, proxy: FaultProxy, source: str, target: str
) -> None:
    """This server takes both keys for one: the move fails and the object is still there."""
    (folder / "up").write_text("the only copy")
    calque("cp", "up", f"s3://cli/{target}", *OPTIONS)
    moved = calque("mv", f"s3://cli/{source}", f"s3://cli/{target}", *OPTIONS)
    assert moved.returncode == 1
    assert "not deleted" in moved.stderr or "Nothing was deleted" in moved.stderr
    assert calque("cat", f"s3://cli/{target}", *OPTIONS).stdout == "the only copy"


@pytest.mark.parametrize("arguments", [("cp", "s3://cli/big", "-"), ("cat", "s3://cli/big")])
def test_damaged_bytes_in_a_pipe(
    folder: Path,
    environment: dict[str, str],
    proxy: FaultProxy,
    big: bytes,
    arguments: tuple[str, ...],
) -> None:
    """What was written in parts has a checksum of the whole; the pipe ends with an error."""

    def damage(reply: Reply) -> Reply:
        return Reply(reply.status, reply.headers, reply.body[:-1] + b"?")

    assert run_command(*arguments, *OPTIONS, cwd=folder, env=environment).stdout == big
    proxy.add(Fault(method="GET", contains="/cli/big", edit=damage, times=None))
    shown = run_command(*arguments, *OPTIONS, cwd=folder, env=environment)
    assert shown.returncode == 1
    assert b"not those that are stored" in shown.stderr


def test_doctor_tries_out_a_server(calque: Calque, proxy: FaultProxy, server: S3Server) -> None:
    """The findings, the options to set, and no key left behind."""
    shown = calque("doctor", "s3://cli/try")
    assert "-o key_order=false" in shown.stderr, shown.stderr
    told = json.loads(calque("doctor", "s3://cli/try", "--json").stdout)
    assert told["options"] == ["key_order=false", "unfit_in_keys=\\"]
    assert {finding["name"] for finding in told["findings"]} >= {"ranges", "the marker part"}
    assert calque("ls", "-r", "s3://cli/try/", "-o", "key_order=false").stdout == ""
    refused = calque("doctor", "memory://x")
    assert refused.returncode == 1


def test_the_verbs_of_an_operator(
    calque: Calque, folder: Path, proxy: FaultProxy, server: S3Server
) -> None:
    """A folder is made, a stranger writes and reads by URLs that end, versions are listed."""
    assert calque("mkdir", "s3://cli/made/deep", "new/er").returncode == 0
    assert (folder / "new" / "er").is_dir()
    assert calque("mkdir", "s3://cli").returncode == 1
    assert "deep/" in calque("ls", "s3://cli/made/", *OPTIONS).stdout
    write = calque("presign", "s3://cli/made/x", "--for", "write", "--expires", "10m")
    read = json.loads(calque("presign", "s3://cli/made/x", "--json").stdout)
    put = urllib.request.Request(write.stdout.strip(), data=b"strange", method="PUT")
    with urllib.request.urlopen(put, timeout=60) as done:
        assert done.status == 200
    with urllib.request.urlopen(read["url"], timeout=60) as got:
        assert got.read() == b"strange"
    assert read["method"] == "GET"
    for wrong in (("--for", "list"), ("--expires", "0s"), ("--expires", "soon")):
        refused = calque("presign", "s3://cli/made/x", *wrong)
        assert refused.returncode in (1, 2)
        assert "Traceback" not in refused.stderr
    assert calque("presign", "new/er/x").returncode == 1
    shown = calque("ls", "s3://cli/made/", "--versions", "--json", "-o", "versions=true")
    assert [each["path"] for each in json.loads(shown.stdout)] == ["made/deep/", "made/x"]
    plain = calque("ls", "s3://cli/made/", "--versions", "-o", "versions=true")
    assert [line.split()[-2] for line in plain.stdout.splitlines()] == ["deep/", "x"]
    assert calque("ls", "new/", "--versions").returncode == 1
