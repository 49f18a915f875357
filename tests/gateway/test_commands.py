"""`calque serve` and `calque store s3-key`, as a user types them."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest
from click.testing import Result
from typer.testing import CliRunner

from calque.cli.commands.store import app as store_app
from calque.errors import InvalidInput, NotFound, PermissionDenied
from calque.gateway.gateway import Gateway
from calque.gateway.keys import AccessKeys
from calque.store.embedded import EmbeddedStore, StoreOptions
from calque.store.open_project import open_project
from tests.gateway.test_gateway import refused
from tests.gateway.world import World
from tests.program import COMMAND, Program
from tests.store_client.test_store_commands import calque


@contextmanager
def serving(folder: Path, *options: str, **environment: str) -> Iterator[dict[str, Any]]:
    """A running `calque serve --json`; what it said."""
    words = ["serve", folder, "--port", "0", "--json", *options]
    process = Program(COMMAND, *words, env={**os.environ, **environment})
    try:
        said = ""
        for line in iter(process.stdout.readline, ""):
            said += line
            if line.startswith("}"):
                break
        yield json.loads(said)
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate()
    assert process.returncode == 0


def store(*arguments: object) -> Result:
    """`calque store …` in this process."""
    return CliRunner().invoke(store_app, [*map(str, arguments)])


def client_of(told: dict[str, Any], key: dict[str, Any] | None = None) -> Any:
    key = key or told["s3"]
    return boto3.client(
        "s3",
        endpoint_url=told["s3"]["endpoint"],
        aws_access_key_id=key["access_key_id"],
        aws_secret_access_key=key["secret_access_key"],
        region_name="us-east-1",
    )


def test_a_store_is_served_with_one_command(tmp_path: Path) -> None:
    """The first start makes a key and shows it once; others are made, listed and revoked."""
    folder = tmp_path / "data"
    with serving(folder) as told:
        assert told["address"].startswith("grpc://127.0.0.1:")
        assert told["s3"]["endpoint"].startswith("http://127.0.0.1:")
        client = client_of(told)
        client.create_bucket(Bucket="photos")
        client.put_object(Bucket="photos", Key="in/a", Body=b"x")
        made = json.loads(
            calque(
                "store", "s3-key", folder, "--prefix", "photos/in/", "--no-write", "--json"
            ).stdout
        )
        reader = client_of(told, made)
        assert reader.get_object(Bucket="photos", Key="in/a")["Body"].read() == b"x"
        refused("AccessDenied", reader.put_object, Bucket="photos", Key="in/b", Body=b"")
        listed = json.loads(store("s3-key", "list", folder, "--json").stdout)
        assert [each["fingerprint"] for each in listed][1] == made["fingerprint"]
        assert listed[1]["prefixes"] == ["photos/in/"]
        assert made["secret_access_key"] not in json.dumps(listed)
        assert store("s3-key", "revoke", folder, made["fingerprint"]).exit_code == 0
        wait_until_refused(reader)
    with serving(folder, "--no-console") as again:
        assert again["console"] is None
        assert "secret_access_key" not in again["s3"], "a key is shown once"
        assert client_of(again, told["s3"]).get_object(Bucket="photos", Key="in/a")


def wait_until_refused(client: Any) -> None:
    """A revoked key is refused within a second; a loaded machine may take longer to ask."""
    end = time.monotonic() + 30

    def ask_on() -> None:
        while time.monotonic() < end:
            client.get_object(Bucket="photos", Key="in/a")

    with pytest.raises(client.exceptions.ClientError) as caught:
        ask_on()
    assert caught.value.response["Error"]["Code"] == "InvalidAccessKeyId"


def test_a_store_with_a_passphrase(tmp_path: Path) -> None:
    """The key holds the grant: a later start needs no passphrase, and S3 works all the same."""
    folder = tmp_path / "data"
    made = EmbeddedStore.create(folder, StoreOptions(passphrase="open sesame"))
    key = AccessKeys(made.endpoint.database).make(made.grant("open sesame"))
    made.close()
    opened = EmbeddedStore.open(folder)
    try:
        world = World(opened, Gateway(opened), key)
        assert world.ask("PUT", "/box").status == 200
        assert world.ask("PUT", "/box/k", body=b"x").status == 200
        assert world.ask("GET", "/box/k").body == b"x"
    finally:
        opened.close()
    refusal = store("s3-key", folder)
    assert isinstance(refusal.exception, PermissionDenied)


def test_an_address_of_ipv6(tmp_path: Path) -> None:
    """Its parts are not taken for the port, of no server."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    with serving(tmp_path / "data", "--host", "::1") as told:
        client_of(told).create_bucket(Bucket="box")
        assert told["s3"]["endpoint"].startswith("http://[::1]:")
        with open_project(told["address"], access=told["access"]) as project:
            assert [each.name for each in project.list_buckets()] == ["box"]


def test_people_are_told_what_to_do(tmp_path: Path) -> None:
    """Help teaches; a key that is not there is said so; a port that is taken, too."""
    shown = store("s3-key", "--help").stdout
    assert "make" in shown
    assert "revoke" in shown
    EmbeddedStore.create(tmp_path / "data").close()
    missing = store("s3-key", "revoke", tmp_path / "data", "0123456789").exception
    assert isinstance(missing, NotFound)
    assert "s3-key list" in str(missing)
    wrong = store("s3-key", tmp_path / "data", "--prefix", "box/no-slash").exception
    assert isinstance(wrong, InvalidInput)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused_start = calque("serve", tmp_path / "data", "--port", 0, "--s3-port", port)
    assert refused_start.returncode == 2
    assert b"cannot listen" in refused_start.stderr
