"""A gateway over a store of its own, with and without a server before it."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from calque.gateway.gateway import Gateway
from calque.gateway.keys import Limits, NewKey
from calque.gateway.request import Headers, Request, Response
from calque.gateway.server import serve_gateway
from calque.operator.services.s3.signing import Keys, Signer
from calque.store.embedded import EmbeddedStore, StoreOptions
from calque.store.project import Project

HOST = "gateway.test"
REGION = "us-east-1"


@dataclass
class World:
    """A store, its gateway and a key to everything in it."""

    store: EmbeddedStore
    gateway: Gateway
    key: NewKey
    url: str = ""

    def client(self, key: NewKey | None = None, *, verify: str | None = None, **config: Any) -> Any:
        """A client of boto3 that tries once: an error is seen, not repeated away."""
        key = key or self.key
        return boto3.client(
            "s3",
            endpoint_url=self.url,
            aws_access_key_id=key.access_key_id,
            aws_secret_access_key=key.secret_access_key,
            region_name=REGION,
            verify=verify,
            config=Config(retries={"max_attempts": 0}, read_timeout=120, **config),
        )

    def make_key(self, **limits: Any) -> NewKey:
        return self.gateway.keys.make(self.store.grant(), Limits(**limits))

    @property
    def project(self) -> Project:
        """The store itself, as its own client sees it."""
        found = self.gateway.keys.find(self.key.access_key_id)
        assert found is not None
        return self.gateway._project(found)

    @property
    def environment(self) -> dict[str, str]:
        """What tools of other processes read."""
        return {
            "AWS_ACCESS_KEY_ID": self.key.access_key_id,
            "AWS_SECRET_ACCESS_KEY": self.key.secret_access_key,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_REGION": REGION,
            "AWS_ENDPOINT_URL_S3": self.url,
            "AWS_ENDPOINT_URL": self.url,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def ask(
        self,
        method: str,
        path: str,
        query: str = "",
        headers: Mapping[str, str] | None = None,
        body: bytes = b"",
        *,
        key: NewKey | None = None,
        sign: bool = True,
    ) -> Answer:
        """One request through :meth:`Gateway.handle`, signed; no server."""
        sent = {"host": HOST, "content-length": str(len(body)), **(headers or {})}
        if sign:
            sent |= sign_request(key or self.key, method, path, query, sent, body)
        request = Request(method, path, query, Headers(sent.items()), io.BytesIO(body))
        return Answer(self.gateway.handle(request))


class Answer:
    """A response, its body read."""

    def __init__(self, response: Response) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.headers.items()}
        body = response.body
        self.body = body if isinstance(body, bytes) else b"".join(body)

    @property
    def code(self) -> str:
        """The code of S3's error document."""
        text = self.body.decode()
        return text.partition("<Code>")[2].partition("</Code>")[0]


def sign_request(
    key: NewKey, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes
) -> dict[str, str]:
    """The headers to send, signed by calque's own client of S3."""
    payload = headers.get("x-amz-content-sha256", hashlib.sha256(body).hexdigest())
    pairs = [each.partition("=") for each in query.split("&") if each]
    return Signer(REGION).sign(
        Keys(key.access_key_id, key.secret_access_key),
        method,
        path,
        [(name, value) for name, _, value in pairs],
        headers,
        payload,
    )


@contextmanager
def gateway_world(
    folder: Path, *, serve: bool = True, database: str | None = None
) -> Iterator[World]:
    """A new store in a folder, its gateway, and a server on the loopback unless not wanted."""
    store = EmbeddedStore.create(folder, StoreOptions(database=database))
    try:
        gateway = Gateway(store)
        key = gateway.keys.make(store.grant())
        if not serve:
            yield World(store, gateway, key)
            return
        with serve_gateway(gateway) as url:
            yield World(store, gateway, key, url)
    finally:
        store.close()
