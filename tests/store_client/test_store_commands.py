"""The commands of the store, as a user types them."""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from calque.store.embedded import EmbeddedStore
from calque.store.open_project import open_project
from calque.store.serve import serve_store
from calque.store.uplink.grant import AccessGrant
from tests.command import run_command


def calque(*arguments: object, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return run_command(*arguments, env={**os.environ, **environment})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("commands") / "data"
    assert calque("store", "init", place).returncode == 0
    assert calque("store", "mkbucket", "photos", "--project", place).returncode == 0
    return place


def test_files_go_in_and_out(folder: Path, tmp_path: Path) -> None:
    """cp, ls, cat and rm work on calque:// as on any other location."""
    content = os.urandom(100_000)
    (tmp_path / "file").write_bytes(content)
    project = {"CALQUE_PROJECT": str(folder)}
    assert calque("cp", tmp_path / "file", "calque://photos/a/b", **project).returncode == 0
    assert calque("cp", "calque://photos/a/b", "calque://photos/c", **project).returncode == 0
    assert calque("rm", "calque://photos/a/b", **project).returncode == 0
    assert calque("cat", "calque://photos/c", **project).stdout == content
    assert calque("ls", "calque://photos/", **project).stdout.split() == [b"c"]
    assert calque("store", "fsck", folder, "--young").returncode == 0
    swept = json.loads(calque("store", "expire", folder, "--json").stdout)
    assert set(swept.values()) == {0}


def test_a_store_is_not_made_twice(folder: Path) -> None:
    """init refuses a folder that holds a store, and says so in JSON too."""
    again = calque("store", "init", folder, "--json")
    assert again.returncode == 1
    assert json.loads(again.stdout)["error"]["kind"] == "AlreadyExists"
    assert calque("store", "init", folder, "--pieces", "six").returncode == 2
    assert calque("store", "fsck", folder / "nowhere").returncode == 1


def test_a_narrowed_access(folder: Path) -> None:
    """The printed grant is narrowed; the whole one is not in it."""
    whole = calque("store", "access", folder).stdout.decode().strip()
    narrow = calque("store", "access", folder, "photos/in/", "--no-write", "--no-delete", "--json")
    text = json.loads(narrow.stdout)["access"]
    zoned = calque("store", "access", folder, "--until", "2027-01-01T02:00:00+02:00").stdout
    (only,) = AccessGrant.parse(zoned.decode()).api_key.restrictions()
    assert only.not_after == datetime(2027, 1, 1, tzinfo=UTC).timestamp() * 1_000_000
    assert text.startswith("calque1-")
    assert text != whole
    refused = calque(
        "rm", "calque://photos/in/x", "--force", CALQUE_PROJECT=str(folder), CALQUE_ACCESS=text
    )
    assert refused.returncode == 1
    assert b"may not delete" in refused.stderr


def test_an_access_names_no_folder(folder: Path) -> None:
    """Neither on the command line nor from Python; an address is kept."""
    with open_project(folder) as project:
        grants = [project.access.serialize(), project.access.restrict(write=False).serialize()]
    grants.append(calque("store", "access", folder).stdout.decode().strip())
    for text in grants:
        assert AccessGrant.parse(text).address == ""
        body = base64.urlsafe_b64decode(text.removeprefix("calque1-") + "==")
        assert str(folder).encode() not in body
        with open_project(folder, access=text) as project:
            list(project.list_buckets())
    address = "grpcs://store.example:7777"
    told = calque("store", "access", folder, "--address", address).stdout.decode()
    assert AccessGrant.parse(told).address == address


def test_the_project_must_be_known(tmp_path: Path) -> None:
    """Without a project the error says how to name one; an empty folder becomes no store."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("CALQUE")}
    done = run_command("ls", "calque://photos/", env=environment, cwd=tmp_path)
    assert done.returncode == 1
    assert b"CALQUE_PROJECT" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_buckets_are_listed_and_removed(tmp_path: Path) -> None:
    """A missing bucket says how to make it; a full one goes only when that is asked for."""
    project = {"CALQUE_PROJECT": str(tmp_path / "data")}
    assert calque("store", "init", tmp_path / "data").returncode == 0
    (tmp_path / "file").write_text("x")
    missing = calque("cp", tmp_path / "file", "calque://first/k", **project)
    assert missing.returncode == 1
    assert b"calque store mkbucket first" in missing.stderr
    for name in ("second", "first"):
        assert calque("store", "mkbucket", name, **project).returncode == 0
    assert calque("cp", tmp_path / "file", "calque://first/k", **project).returncode == 0
    listed = json.loads(calque("store", "buckets", "--json", **project).stdout)
    assert [bucket["name"] for bucket in listed] == ["first", "second"]
    assert calque("store", "rmbucket", "first", **project).returncode == 1
    gone = calque("store", "rmbucket", "first", "--with-objects", "--json", **project)
    assert json.loads(gone.stdout) == {"bucket": "first", "deleted_objects": 1}
    assert calque("store", "rmbucket", "second", **project).returncode == 0
    assert calque("store", "buckets", **project).stdout == b""


def test_a_port_that_cannot_be_is_refused(folder: Path) -> None:
    """A port out of range is wrong usage; gRPC alone would take another one."""
    refused = calque("serve", folder, "--port", "99999")
    assert refused.returncode == 2
    assert b"65535" in refused.stderr


def test_a_grant_is_enough(folder: Path, tmp_path: Path) -> None:
    """Whoever was sent one line sees the buckets that it reaches, and need not know the place."""
    with closing(EmbeddedStore.open(folder)) as store, serve_store(store) as served:
        grant = replace(store.grant(), address=served.address).serialize()
        environment = {"CALQUE_ACCESS": grant, "CALQUE_PROJECT": "", "HOME": str(tmp_path)}
        listed = calque("store", "buckets", "--json", **environment)
        assert "photos" in [one["name"] for one in json.loads(listed.stdout)], listed.stderr
        made = calque("store", "mkbucket", "granted", **environment)
        assert made.returncode == 0, made.stderr


def test_what_serve_did_is_told(tmp_path: Path) -> None:
    """A store that was not there is said to be new; a port that is taken is said with what to do,
    and in no words of a library."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = calque("serve", tmp_path / "new", "--port", port)
    assert done.returncode == 2
    told = done.stderr.decode().splitlines()
    assert told[0] == f"there was no store in {tmp_path / 'new'}: one was made"
    assert told[1] == f"error: cannot listen at 127.0.0.1:{port}: Address already in use"
    assert "--port" in told[2]
    assert len(told) == 3


def test_metadata_cannot_trick_a_terminal(folder: Path) -> None:
    """Values are escaped as names are."""
    with open_project(folder) as project:
        project.upload("photos", "tricky", b"1", metadata={"note": "a\x1b[31m\u202eb"})
    shown = calque("stat", "calque://photos/tricky", CALQUE_PROJECT=str(folder)).stdout
    assert rb"note=a\x1b[31m\u202eb" in shown


def test_roots_are_named_as_paths_are(tmp_path: Path) -> None:
    """Relative to where the command is given, for a new store, a restored one and a node of it;
    what lies in a store's folder moves with it."""

    def here(*arguments: object) -> subprocess.CompletedProcess[bytes]:
        return run_command(*arguments, cwd=tmp_path)

    def node_flags(*roots: str) -> list[str]:
        return [word for root in roots for word in ("--node", root)]

    made = here("store", "init", "a", "--pieces", "1/2", *node_flags("d0", "./d1/", "a/d2", "d3"))
    assert made.returncode == 0, made.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"a", "d0", "d1", "d3"}
    described = json.loads((tmp_path / "a/store.json").read_text())["nodes"]
    assert [each["address"] for each in described] == [
        str(tmp_path / "d0"), str(tmp_path / "d1"), "d2", str(tmp_path / "d3"),
    ]  # fmt: skip
    for name in ("./d1", "d0/", "a/../a/d2"):
        left = here("store", "exit", "a", name, "--dry-run")
        assert left.returncode == 0, left.stderr
    lost = here("store", "repair", "a", "--gone", "../" + tmp_path.name + "/d3", "--dry-run")
    assert lost.returncode == 0, lost.stderr
    assert here("store", "backup", "b", "--project", "a").returncode == 0
    back = here("store", "restore", "b", "--project", "c", *node_flags("e0", "e1", "e2", "c/e3"))
    assert back.returncode == 0, back.stderr
    assert all((tmp_path / each / "calque-node").is_file() for each in ("e0", "e1", "e2", "c/e3"))
