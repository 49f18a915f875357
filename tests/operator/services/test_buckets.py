"""Buckets of an account, asked of every service that has some."""

from __future__ import annotations

from pathlib import Path

import pytest

from calque.errors import CalqueError, ConfigInvalid, PermissionDenied, Unavailable, Unsupported
from calque.operator.layers import default_layers
from calque.operator.layers.chain import Chain
from calque.operator.registry import list_buckets
from calque.store.open_project import open_project
from tests.operator.services.s3.server import make_bucket
from tests.servers.azurite import Azurite
from tests.servers.gcs_fake import GcsFake
from tests.servers.seaweedfs import S3Server


def names(uri: str, **options: object) -> list[str]:
    return [bucket.name for bucket in list_buckets(uri, options, Chain(default_layers()))]


def test_s3(seaweed: S3Server) -> None:
    """S3 lists what the keys own; wrong keys are refused as such."""
    make_bucket(seaweed, "buckets-one")
    make_bucket(seaweed, "buckets-two")
    options = {
        "endpoint_url": seaweed.endpoint,
        "region": seaweed.region,
        "access_key_id": seaweed.access_key,
        "secret_access_key": seaweed.secret_key,
    }
    found = names("s3://", **options)
    assert {"buckets-one", "buckets-two"} <= set(found)
    assert found == sorted(found)
    with pytest.raises(PermissionDenied):
        names("s3://", **{**options, "secret_access_key": "wrong"})


def test_gcs(monkeypatch: pytest.MonkeyPatch) -> None:
    """GCS lists those of a project, which must be said."""
    with GcsFake() as fake:
        fake.make_bucket("one")
        fake.make_bucket("two")
        monkeypatch.delenv("GOOGLE_CLOUD_PROJECT", raising=False)
        with pytest.raises(ConfigInvalid, match="whose buckets"):
            names("gs://", endpoint=fake.endpoint, anonymous=True)
        monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p")
        assert names("gs://", endpoint=fake.endpoint, anonymous=True) == ["one", "two"]


def test_azure(tmp_path: Path) -> None:
    """Azure lists the containers of the account, named in either way."""
    try:
        azurite = Azurite(tmp_path)
    except Unavailable as error:
        pytest.skip(f"Azurite cannot be had: {error}")
    with azurite:
        azurite.make_container("calquetest", "one")
        azurite.make_container("calquetest", "two")
        options = {
            "key": azurite.keys["calquetest"],
            "endpoint": azurite.endpoint("calquetest"),
        }
        assert names("az://", account="calquetest", **options) == ["one", "two"]
        assert names("az://calquetest.blob/", **options) == ["one", "two"]


def test_store(tmp_path: Path) -> None:
    """The store lists those that the access may see."""
    with open_project(tmp_path / "data", passphrase="a passphrase") as project:
        project.create_bucket("photos")
    assert names("calque://", project=str(tmp_path / "data"), passphrase="a passphrase") == [
        "photos"
    ]


def test_services_without_buckets() -> None:
    """Where there are none it is said so."""
    for uri in ("memory://", "file:///"):
        with pytest.raises(Unsupported, match="no buckets"):
            names(uri)
    with pytest.raises(CalqueError):
        names("nothing://")
