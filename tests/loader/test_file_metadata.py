"""All that is known of a staged file is in its record, whichever service holds it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from calque.config import LedgerSettings, Secret, Settings, StageSettings
from calque.loader.api import load
from calque.operator import Operator
from tests.command import run_command_text
from tests.servers.azurite import Azurite
from tests.servers.gcs_fake import GcsFake
from tests.servers.seaweedfs import S3Server

TOLD: dict[str, Any] = {
    "content_type": "text/csv",
    "content_language": "de",
    "content_disposition": 'attachment; filename="till 7.csv"',
    "cache_control": "no-store",
    "user": {"origin": "till-7"},
}
"""What whoever uploads a file says of it."""


@dataclass(frozen=True)
class Service:
    """A stage in a service, its options, and what a look at a file and a listing of it tell."""

    location: str
    options: dict[str, Any]
    written: dict[str, Any]
    looked: frozenset[str]
    listed: frozenset[str]

    def open(self) -> Operator:
        return Operator.from_uri(self.location, **self.options)


EVERYTHING = frozenset(TOLD)


def on_disk(request: pytest.FixtureRequest) -> Service:
    folder = request.getfixturevalue("tmp_path") / "in"
    folder.mkdir()
    return Service(f"{folder}/", {}, {}, frozenset(), frozenset())


def on_s3(request: pytest.FixtureRequest) -> Service:
    server: S3Server = request.getfixturevalue("seaweed")
    bucket = f"m{uuid.uuid4().hex[:12]}"
    boto3.client(
        "s3",
        endpoint_url=server.endpoint,
        aws_access_key_id=server.access_key,
        aws_secret_access_key=server.secret_key,
        region_name=server.region,
        config=Config(s3={"addressing_style": "path"}),
    ).create_bucket(Bucket=bucket)
    options = {
        "endpoint_url": server.endpoint,
        "region": server.region,
        "credentials": "tests.loader.bucket:keys",
    }
    written = {**TOLD, "tags": {"team": "shop"}}
    listed = frozenset({"storage_class"})  # a look tells of other classes than STANDARD only
    return Service(f"s3://{bucket}/in/", options, written, EVERYTHING | {"tags"}, listed)


def on_gcs(request: pytest.FixtureRequest) -> Service:
    fake: GcsFake = request.getfixturevalue("gcs")
    bucket = f"m{uuid.uuid4().hex[:12]}"
    fake.make_bucket(bucket, versioning=True)
    every = EVERYTHING | {"storage_class", "checksum"}
    options = {"endpoint": fake.endpoint, "anonymous": True}
    return Service(f"gs://{bucket}/in/", options, TOLD, every, every)


def on_azure(request: pytest.FixtureRequest) -> Service:
    azurite: Azurite = request.getfixturevalue("azurite")
    container = f"m{uuid.uuid4().hex[:12]}"
    azurite.make_container("calquetest", container)
    options = {
        "account": "calquetest",
        "endpoint": azurite.endpoint("calquetest"),
    }
    monkeypatch: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT", "calquetest")
    monkeypatch.setenv("AZURE_STORAGE_KEY", azurite.keys["calquetest"])
    every = EVERYTHING | {"checksum"}
    return Service(f"az://{container}/in/", options, TOLD, every, every)


SERVICES: list[Callable[[pytest.FixtureRequest], Service]] = [on_disk, on_s3, on_gcs, on_azure]


@pytest.fixture(scope="module")
def gcs() -> Iterator[GcsFake]:
    with GcsFake() as fake:
        yield fake


@pytest.fixture(params=SERVICES, ids=[one.__name__ for one in SERVICES])
def service(request: pytest.FixtureRequest) -> Service:
    made: Service = request.param(request)
    return made


@pytest.mark.parametrize("named", [True, False], ids=["by name", "by listing"])
def test_a_record_has_all_that_is_known(service: Service, tmp_path: Path, named: bool) -> None:
    """``ledger show --json`` prints what a look, or the listing, told of a file; a rebuild too."""
    with service.open() as stage:
        stage.write("a.csv", b"id,name\n1,a\n", **service.written)
        found = stage.stat("a.csv") if named else next(iter(stage.list("")))
    settings = Settings(
        ledger=LedgerSettings(url=Secret(str(tmp_path / "ledger.db"))),
        stages={"in": StageSettings(service.location, service.options)},
    )
    files = ["a.csv"] if named else ()
    load("@in", str(tmp_path / "t"), files=files, settings=settings, spark="local")
    record = shown(tmp_path / "t", tmp_path / "ledger.db")
    told = record["metadata"] or {}
    assert told == (found.details() or {})
    assert set(told) >= (service.looked if named else service.listed)
    assert {name: told[name] for name in TOLD if name in told} == {
        name: TOLD[name] for name in TOLD if name in told
    }
    assert record["size"] == len(b"id,name\n1,a\n")
    assert (record["etag"], record["version"], record["token"]) == (
        found.etag, found.version, found.token,
    )  # fmt: skip
    assert found.last_modified is not None
    assert datetime.fromisoformat(record["last_modified"]) == found.last_modified
    again = replace(settings, ledger=LedgerSettings(url=Secret(str(tmp_path / "other.db"))))
    load("@in", str(tmp_path / "t"), files=files, settings=again, spark="local")
    assert shown(tmp_path / "t", tmp_path / "other.db")["metadata"] == record["metadata"]


def shown(table: Path, ledger: Path) -> dict[str, Any]:
    """The one record of a table as the command prints it."""
    done = run_command_text("ledger", "show", table, "--ledger", ledger, "--json")
    assert done.returncode == 0, done.stderr
    (record,) = json.loads(done.stdout)
    return dict(record)
