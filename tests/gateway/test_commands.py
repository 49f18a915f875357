"""`calque serve` and `calque store s3-key`, as a user types them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.gateway.test_gateway import refused
from tests.store_client.test_store_commands import calque


@contextmanager
def serving(folder: Path, *options: str, **environment: str) -> Iterator[dict[str, Any]]:
    """A running `calque serve --json`; what it said."""
    command = [sys.executable, "-m", "calque.cli", "serve", str(folder), "--port", "0", "--json"]
    process = subprocess.Popen(
        [*command, *options], stdout=subprocess.PIPE, text=True, env={**os.environ, **environment}
    )
    assert process.stdout is not None
    try:
        said = ""
        for line in iter(process.stdout.readline, ""):
            said += line
            if line.startswith("}"):
                break
        yield json.loads(said)
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 0


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
        listed = json.loads(calque("store", "s3-key", "list", folder, "--json").stdout)
        assert [each["fingerprint"] for each in listed][1] == made["fingerprint"]
        assert listed[1]["prefixes"] == ["photos/in/"]
        assert made["secret_access_key"] not in json.dumps(listed)
        assert calque("store", "s3-key", "revoke", folder, made["fingerprint"]).returncode == 0
        wait_until_refused(reader)
    with serving(folder) as again:
        assert "secret_access_key" not in again["s3"], "a key is shown once"
        assert client_of(again, told["s3"]).get_object(Bucket="photos", Key="in/a")
    with serving(folder, "--no-s3", "--no-console") as without:
        assert without["s3"] is None
        assert without["console"] is None


def wait_until_refused(client: Any) -> None:
    """A revoked key is refused within a second; a loaded machine may take longer to ask."""
    end = time.monotonic() + 30
    with pytest.raises(client.exceptions.ClientError) as caught:
        while time.monotonic() < end:
            client.get_object(Bucket="photos", Key="in/a")
    assert caught.value.response["Error"]["Code"] == "InvalidAccessKeyId"


def test_a_store_with_a_passphrase(tmp_path: Path) -> None:
    """The key holds the grant: the next start needs no passphrase, and S3 works all the same."""
    folder = tmp_path / "data"
    with serving(folder, CALQUE_PASSPHRASE="open sesame") as told:
        client_of(told).create_bucket(Bucket="box")
    with serving(folder, CALQUE_PASSPHRASE="") as again:
        client = client_of(again, told["s3"])
        client.put_object(Bucket="box", Key="k", Body=b"x")
        assert client.get_object(Bucket="box", Key="k")["Body"].read() == b"x"
    refusal = calque("store", "s3-key", folder, CALQUE_PASSPHRASE="")
    assert refusal.returncode == 1
    assert b"passphrase" in refusal.stderr


def test_people_are_told_what_to_do(tmp_path: Path) -> None:
    """Help teaches; a key that is not there is said so; a port that is taken, too."""
    shown = calque("store", "s3-key", "--help").stdout.decode()
    assert "make" in shown
    assert "revoke" in shown
    assert calque("store", "init", tmp_path / "data").returncode == 0
    missing = calque("store", "s3-key", "revoke", tmp_path / "data", "0123456789")
    assert missing.returncode == 1
    assert b"s3-key list" in missing.stderr
    wrong = calque("store", "s3-key", tmp_path / "data", "--prefix", "box/no-slash")
    assert wrong.returncode == 1
    assert b"must be empty or end in '/'" in wrong.stderr
    with serving(tmp_path / "data") as told:
        port = told["s3"]["endpoint"].rpartition(":")[2]
        taken = calque("serve", tmp_path / "data", "--port", 0, "--s3-port", port)
        assert taken.returncode == 2
        assert b"cannot listen" in taken.stderr
