"""A bucket on a test server."""

from __future__ import annotations

from contextlib import suppress

from calque.errors import AlreadyExists
from calque.operator.layers.chain import Chain
from calque.operator.services.s3.client import Client, Link, Request
from calque.operator.services.s3.config import S3Config
from tests.servers.seaweedfs import S3Server


def client_of(server: S3Server, bucket: str, **options: object) -> Client:
    """A client for a bucket, without layers."""
    given: dict[str, object] = {
        "endpoint_url": server.endpoint,
        "region": server.region,
        "access_key_id": server.access_key,
        "secret_access_key": server.secret_key,
        **options,
    }
    return Client(Link(S3Config(bucket=bucket, **given)), Chain())  # type: ignore[arg-type]


def make_bucket(server: S3Server, bucket: str, *, versions: bool = False) -> None:
    """Create a bucket, keeping versions if asked; other tests of this process may have made it."""
    client = client_of(server, bucket)
    with suppress(AlreadyExists):
        client.send("make", "", Request("PUT", None))
    if versions:
        state = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
        client.send("make", "", Request("PUT", None, query=(("versioning", ""),), body=state))
    client.link.close()
