"""A place on an object store that is reached by options alone: no variable of the environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import boto3
from botocore.config import Config
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

from calque.config import Settings, StageSettings, TableSettings
from tests.loader.loader import Place
from tests.servers.seaweedfs import ACCESS_KEY, SECRET_KEY

REGION = "us-east-1"


def keys() -> dict[str, str]:
    """The provider that the options name: secrets are found where a service is opened."""
    return {"access_key_id": ACCESS_KEY, "secret_access_key": SECRET_KEY}


@dataclass(frozen=True)
class BucketPlace(Place):
    """Stage and table in a bucket; the ledger, and Iceberg's catalog, in a folder."""

    endpoint: str
    bucket: str

    @property
    def source(self) -> str:
        return "@in"

    @property
    def table(self) -> str:
        return "t"

    @property
    def options(self) -> dict[str, str]:
        """As they would stand in calque.toml."""
        return {
            "endpoint_url": self.endpoint,
            "region": REGION,
            "credentials": "tests.loader.bucket:keys",
        }

    @property
    def settings(self) -> Settings:
        lake = f"s3://{self.bucket}/lake"
        table = TableSettings(location=f"{lake}/t", options=self.options)
        if self.kind == "iceberg":
            table = TableSettings(
                format="iceberg", catalog="lake", identifier="default.t", options=self.options
            )
        return Settings(
            stages={"in": StageSettings(f"s3://{self.bucket}/in/", self.options)},
            tables={"t": table},
            catalogs={"lake": self._catalog},
        )

    @property
    def _catalog(self) -> Mapping[str, str]:
        uri = f"sqlite:///{self.folder}/catalog.db"
        return {"type": "sql", "uri": uri, "warehouse": f"s3://{self.bucket}/lake"}

    def delta_table(self) -> DeltaTable:
        told = {
            "aws_endpoint": self.endpoint,
            "aws_allow_http": "true",
            "aws_region": REGION,
            "aws_access_key_id": ACCESS_KEY,
            "aws_secret_access_key": SECRET_KEY,
        }
        return DeltaTable(f"s3://{self.bucket}/lake/t", storage_options=told)

    def iceberg_table(self) -> Table:
        told = {
            "s3.endpoint": self.endpoint,
            "s3.region": REGION,
            "s3.access-key-id": ACCESS_KEY,
            "s3.secret-access-key": SECRET_KEY,
        }
        return SqlCatalog("lake", **self._catalog, **told).load_table("default.t")

    def files(self) -> set[str]:
        return {key.removeprefix("lake/") for key in self.keys("lake/")}

    def keys(self, prefix: str) -> list[str]:
        pages = self.client.get_paginator("list_objects_v2").paginate(
            Bucket=self.bucket, Prefix=prefix
        )
        return [one["Key"] for page in pages for one in page.get("Contents", [])]

    def put(self, name: str, body: str) -> None:
        """Stage a file."""
        self.client.put_object(Bucket=self.bucket, Key=f"in/{name}", Body=body.encode())

    @cached_property
    def client(self) -> Any:
        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=ACCESS_KEY,
            aws_secret_access_key=SECRET_KEY,
            region_name=REGION,
            config=Config(s3={"addressing_style": "path"}),
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "client"}
