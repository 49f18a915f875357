"""Two servers in one command, servers with names, pipes, and half-written URIs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import Calque, Spawn
from tests.command import run_command
from tests.operator.services.s3.server import make_bucket
from tests.servers.moto import moto
from tests.servers.seaweedfs import S3Server

CONFIG = """
[remotes.one]
location = "s3://"
options = {{ endpoint_url = "{one.endpoint}", region = "{one.region}" }}

[remotes.two]
location = "s3://shared/deep/"
options = {{ endpoint_url = "{two.endpoint}", region = "{two.region}" }}
"""


@pytest.fixture(scope="module")
def servers() -> Iterator[tuple[S3Server, S3Server]]:
    """Two servers, each with a bucket of the same name."""
    with moto() as one, moto() as two:
        make_bucket(one, "shared")
        make_bucket(two, "shared")
        yield one, two


@pytest.fixture
def named(
    servers: tuple[S3Server, S3Server], folder: Path, environment: dict[str, str]
) -> tuple[S3Server, S3Server]:
    """Both by name, their keys in the environment."""
    (folder / "calque.toml").write_text(CONFIG.format(one=servers[0], two=servers[1]))
    for name, server in zip(("ONE", "TWO"), servers, strict=True):
        environment[f"CALQUE_REMOTES_{name}_ACCESS_KEY_ID"] = server.access_key
        environment[f"CALQUE_REMOTES_{name}_SECRET_ACCESS_KEY"] = server.secret_key
    return servers


def test_a_copy_between_two_servers(
    calque: Calque, folder: Path, named: tuple[S3Server, S3Server]
) -> None:
    """A name stands for a server; the same bucket and key on another is another object."""
    (folder / "a").write_text("text")
    assert calque("cp", "a", "one:shared/deep/a").returncode == 0
    refused = calque("cp", "one:shared/deep/a", "two:a")
    assert refused.returncode == 1
    assert "--stream" in refused.stderr
    done = calque("cp", "one:shared/deep/a", "two:a", "--stream", "--json")
    assert json.loads(done.stdout)["route"] == "through the client", done.stderr
    assert calque("cat", "two:a").stdout == "text"
    assert calque("mv", "two:a", "one:shared/deep/a", "--stream").returncode == 0
    assert calque("cat", "one:shared/deep/a").stdout == "text"
    assert calque("stat", "two:a").returncode == 1


def test_a_job_of_named_servers_is_resumed_with_their_keys(
    calque: Calque,
    spawn: Spawn,
    folder: Path,
    environment: dict[str, str],
    named: tuple[S3Server, S3Server],
    tmp_path: Path,
) -> None:
    """A journal keeps no secret: whoever resumes, from any folder, finds those of remotes in the
    environment, and what was to be kept is kept where it was asked for."""
    for number in range(30):
        file = folder / "many" / f"{number:02}"
        file.parent.mkdir(exist_ok=True)
        file.write_text("new")
    assert calque("cp", "-r", "many/", "one:shared/jobs/").returncode == 0
    (folder / "mirror").mkdir()
    (folder / "mirror" / "29").write_text("old one")
    for target, more in (("two:jobs/", ()), ("mirror/", ("--backup-to", "kept"))):
        command = ("sync", "one:shared/jobs/", target, "-c", "1", *more)
        environment["CALQUE_FAULT"] = "tree.told@5:kill"
        with spawn(*command) as killed:
            killed.communicate(timeout=200)
        assert killed.returncode == -signal.SIGKILL
        del environment["CALQUE_FAULT"]
        (job,) = [
            each
            for each in json.loads(calque("jobs", "ls", "--json").stdout)
            if each["state"] == "DIED"
        ]
        shown = calque("jobs", "show", job["job"], "--json").stdout
        assert named[0].secret_key not in shown
        elsewhere = {**environment, "CALQUE_CONFIG": str(folder / "calque.toml")}
        done = run_command(
            "jobs", "resume", job["job"], "--yes", "--json", cwd=tmp_path, env=elsewhere
        )
        assert done.returncode == 0, done.stderr
        totals = json.loads(done.stdout)["totals"]
        assert totals["copied"]["objects"] + totals["up_to_date"]["objects"] == 30
    assert calque("cat", "two:jobs/00").stdout == "new"
    assert (folder / "kept" / "29").read_text() == "old one"
    assert not (tmp_path / "kept").exists()


def test_options_of_each_side(
    calque: Calque,
    folder: Path,
    environment: dict[str, str],
    servers: tuple[S3Server, S3Server],
) -> None:
    """--source-option and --target-option reach one side, -o both."""
    one, two = servers
    environment |= {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any"}
    (folder / "b").write_text("text")
    first, second = f"endpoint_url={one.endpoint}", f"endpoint_url={two.endpoint}"
    region = ("-o", f"region={one.region}")
    assert calque("cp", "b", "s3://shared/b", "--target-option", first, *region).returncode == 0
    options = ("--source-option", first, "--target-option", second, *region)
    done = calque("cp", "s3://shared/b", "s3://shared/b", "--stream", *options)
    assert done.returncode == 0, done.stderr
    assert calque("cat", "s3://shared/b", "-o", second, *region).stdout == "text"


def test_secrets_do_not_belong_in_the_file(calque: Calque, folder: Path) -> None:
    """A key in calque.toml is refused, unshown, with the variable that may hold it."""
    (folder / "calque.toml").write_text(
        '[remotes.mine]\nlocation = "s3://b"\noptions = { secret_access_key = "hush" }\n'
    )
    refused = calque("ls", "mine:x")
    assert refused.returncode == 2
    assert "CALQUE_REMOTES_MINE_SECRET_ACCESS_KEY" in refused.stderr
    assert "hush" not in refused.stderr


@pytest.mark.parametrize("half", ["s3:bucket/key", "gs:b/k", "S3:/bucket/key", "az:c"])
def test_half_a_uri(calque: Calque, folder: Path, half: str) -> None:
    """An error that shows the whole one, and no folder of that name."""
    (folder / "x").write_text("text")
    refused = calque("cp", "x", half)
    assert refused.returncode == 1
    assert "://" in refused.stderr
    assert sorted(os.listdir(folder)) == ["x"]


def test_half_a_uri_of_a_file(calque: Calque, folder: Path) -> None:
    """The whole one that is shown has the file's path, with its slash."""
    assert f"file://{folder}/y," in calque("cp", "x", f"file:{folder}/y").stderr


def test_a_file_with_a_colon(calque: Calque, folder: Path) -> None:
    """Any other name may hold one, and ./ makes a file of any name."""
    (folder / "x").write_text("text")
    assert calque("cp", "x", "12:30.txt").returncode == 0
    assert calque("cp", "x", "./s3:x").returncode == 0
    assert (folder / "12:30.txt").read_text() == (folder / "s3:x").read_text() == "text"


def _piped(folder: Path, environment: dict[str, str], data: bytes, *arguments: str) -> Piped:
    return run_command(*arguments, cwd=folder, env=environment, stdin=data)


Piped = subprocess.CompletedProcess[bytes]


def test_pipes(folder: Path, environment: dict[str, str], named: tuple[S3Server, S3Server]) -> None:
    """What is piped in becomes an object; an object is piped out, its bytes and nothing else."""
    data = os.urandom(9_000_000)
    for target in ("piped", "one:shared/piped"):
        stored = _piped(folder, environment, data, "cp", "-", target, "--if-not-exists", "--json")
        assert json.loads(stored.stdout)["bytes"] == len(data), stored.stderr
        again = _piped(folder, environment, b"x", "cp", "-", target, "--if-not-exists")
        assert again.returncode == 1
        shown = _piped(folder, environment, b"", "cp", target, "-")
        assert shown.stdout == data
    assert _piped(folder, environment, b"", "cp", "-", "empty").returncode == 0
    assert (folder / "empty").read_bytes() == b""
    assert not (folder / "-").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("cp", "-", "-"),
        ("cp", "-", "./"),
        ("cp", "-", "x", "--resume"),
        ("cp", "x", "-", "--if-not-exists"),
        ("mv", "-", "x"),
        ("mv", "x", "-"),
    ],
)
def test_what_a_pipe_cannot_do(
    folder: Path, environment: dict[str, str], arguments: tuple[str, ...]
) -> None:
    """Each is an error that says so, and nothing is written."""
    (folder / "x").write_text("text")
    done = _piped(folder, environment, b"data", *arguments)
    assert done.returncode == 1
    assert done.stderr.startswith(b"error: ")
    assert os.listdir(folder) == ["x"]
    assert (folder / "x").read_text() == "text"


def test_trees_of_two_servers_are_not_deleted_as_of_one(
    calque: Calque, folder: Path, named: tuple[S3Server, S3Server]
) -> None:
    """The second is not looked for on the server of the first, where the same name lies too."""
    (folder / "a").write_text("text")
    for place in ("one:shared/deep/t/a", "one:shared/u/a", "two:t/a"):
        assert calque("cp", "a", place).returncode == 0
    refused = calque("rm", "-r", "one:shared/u/", "two:t/")
    assert refused.returncode == 1
    assert "one at a time" in refused.stderr
    for place in ("one:shared/deep/t/a", "one:shared/u/a", "two:t/a"):
        assert calque("stat", place).returncode == 0
