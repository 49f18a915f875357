"""A stage and a table on an object store: etags decide, and the promise is the same."""

from __future__ import annotations

import uuid
from collections import Counter
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from deltalake import DeltaTable
from sqlalchemy import update

from calque import faults
from calque.config import Settings
from calque.ledger import open_ledger
from calque.ledger.history import records_of
from calque.ledger.schema import files as records
from calque.loader.report import Report
from calque.loader.request.request import LoadRequest
from calque.loader.run.engines import choose_engine
from calque.loader.run_request import RequestRun
from tests.servers.seaweedfs import S3Server


class Lake:
    """A bucket with a stage and a Delta table."""

    def __init__(self, server: S3Server, bucket: str, ledger: Path) -> None:
        self.bucket = bucket
        self.ledger = ledger
        self.options = {"AWS_ENDPOINT_URL": server.endpoint, "AWS_ALLOW_HTTP": "true"}
        self.client = boto3.client(
            "s3",
            endpoint_url=server.endpoint,
            aws_access_key_id=server.access_key,
            aws_secret_access_key=server.secret_key,
            region_name=server.region,
            config=Config(s3={"addressing_style": "path"}),
        )
        self.client.create_bucket(Bucket=bucket)

    def put(self, name: str, body: str, **headers: Any) -> None:
        key = f"in/{name}"
        self.client.put_object(Bucket=self.bucket, Key=key, Body=body.encode(), **headers)

    def record(self) -> dict[str, Any]:
        """The one record that the ledger has of the table."""
        statement = RequestRun(
            LoadRequest(stage="x/", into=f"s3://{self.bucket}/lake/t"),
            Settings(),
            open_ledger(self.ledger),
            lambda _size, _sql: choose_engine(spark="local"),
        )
        (found,) = records_of(statement.ledger, statement.lake.key(statement.lake.open()))
        return found

    def names(self, prefix: str = "in/") -> list[str]:
        found = self.client.list_objects_v2(Bucket=self.bucket, Prefix=prefix).get("Contents", [])
        return [one["Key"] for one in found]

    def load(self, **options: object) -> Report:
        request = LoadRequest(
            stage=f"s3://{self.bucket}/in/",
            into=f"s3://{self.bucket}/lake/t",
            **options,  # type: ignore[arg-type]
        )
        ledger = open_ledger(self.ledger)
        return RequestRun(
            request, Settings(), ledger, lambda _size, _sql: choose_engine(spark="local")
        ).run()

    def ids(self) -> Counter[int]:
        table = DeltaTable(f"s3://{self.bucket}/lake/t", storage_options=self.options)
        return Counter(table.to_pyarrow_table().column("id").to_pylist())


@pytest.fixture
def lake(seaweed: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    for name, value in seaweed.environment.items():
        monkeypatch.setenv(name, value)
    return Lake(seaweed, f"b{uuid.uuid4().hex}", tmp_path / "ledger.db")


def test_once_on_s3(lake: Lake) -> None:
    """Load, load again, change one, purge: by etag, on a real object store."""
    lake.put("a.csv", "id,name\n1,a\n2,b\n")
    lake.put("b.csv", "id,name\n3,c\n")
    assert lake.load().rows_loaded == 3
    assert lake.load().files.counts == {"SKIPPED_LOADED": 2}
    lake.put("b.csv", "id,name\n4,d\n")
    assert lake.load(on_changed="replace").rows_loaded == 1
    assert lake.ids() == Counter([1, 2, 4])
    lake.put("c.csv", "id,name\n5,e\n")
    assert lake.load(purge=True).purged == 1
    assert lake.names() == ["in/a.csv", "in/b.csv"]
    assert lake.ids() == Counter([1, 2, 4, 5])


def test_two_ledgers_on_s3(lake: Lake) -> None:
    """What one ledger loads, with a label or without, another knows: by the log in the bucket."""
    one, other = lake.ledger, lake.ledger.with_name("other.db")
    for number, ledger in enumerate((one, other, one, other)):
        lake.ledger = ledger
        lake.put(f"{number}.csv", f"id,name\n{number},a\n")
        assert lake.load(label=f"day{number}").load_ids == [f"day{number}"]
    for lake.ledger in (one, other):
        assert lake.load().files.counts == {"SKIPPED_LOADED": 4}
        assert lake.load(label="day0", force=True).replayed
    assert lake.ids() == Counter(range(4))


def test_same_bytes_again_are_not_loaded(lake: Lake) -> None:
    """An object put again with the same content is not loaded, whatever its time stamp."""
    lake.put("a.csv", "id,name\n1,a\n")
    lake.load()
    lake.put("a.csv", "id,name\n1,a\n")
    assert lake.load().files.counts == {"SKIPPED_LOADED": 1}
    assert lake.ids() == Counter([1])


def test_records_hold_the_etag(lake: Lake) -> None:
    """The record has the etag as the service gave it and the location with the bucket."""
    lake.put("a.csv", "id,name\n1,a\n")
    lake.load()
    found = lake.record()
    assert found["location"] == f"s3://{lake.bucket}/in/a.csv"
    assert found["etag"]


def test_the_same_bytes_refresh_the_record(lake: Lake) -> None:
    """Put again with the same bytes, a file's record has its new time and version."""
    lake.put("a.csv", "id,name\n1,a\n")
    lake.load()
    true = lake.record()
    for files in ((), ("a.csv",)):
        with open_ledger(lake.ledger) as ledger, ledger.write() as connection:
            connection.execute(update(records).values(last_modified=1, version="old"))
        assert lake.load(files=files).files.counts == {"SKIPPED_LOADED": 1}
        found = lake.record()
        assert (found["last_modified"], found["version"]) == (true["last_modified"], None)


def test_a_record_holds_all_that_is_known(lake: Lake) -> None:
    """What a look at a file tells is in its record; a listing tells less. A rebuild keeps it."""
    lake.put(
        "a.csv",
        "id,name\n1,a\n",
        ContentType="text/csv",
        CacheControl="no-store",
        Metadata={"origin": "till-7"},
    )
    lake.load(files=("a.csv",))
    told = lake.record()["metadata"]
    assert (told["content_type"], told["cache_control"]) == ("text/csv", "no-store")
    assert told["user"] == {"origin": "till-7"}
    lake.ledger = lake.ledger.with_name("other.db")
    lake.load()
    assert lake.record()["metadata"] == told


def test_archive_on_s3(lake: Lake) -> None:
    """Files move within the bucket; one that stopped between copy and delete is finished."""
    lake.put("x/a.csv", "id,name\n1,a\n")
    lake.put("b.csv", "id,name\n2,b\n")
    faults.arm("purge.copied@1:error")
    try:
        stopped = lake.load(archive=f"s3://{lake.bucket}/old/")
    finally:
        faults.arm("")
    assert stopped.archived == 1
    assert any("could not be moved" in note for note in stopped.notes)
    assert len(lake.names("in/")) == 1
    assert lake.load().archived == 1
    assert lake.names("in/") == []
    assert lake.names("old/") == ["old/b.csv", "old/x/a.csv"]
    lake.put("b.csv", "id,name\n3,c\n")
    again = lake.load(archive=f"s3://{lake.bucket}/old/")
    assert lake.names("old/") == [f"old/{again.load_ids[0]}/b.csv", "old/b.csv", "old/x/a.csv"]
    assert lake.ids() == Counter([1, 2, 3])
