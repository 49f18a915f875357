"""The buckets of an account: asked of the server, not of one bucket."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from calque.errors import Unexpected
from calque.operator.http.paging import PageGuard
from calque.operator.http.pool import Pool
from calque.operator.layers.chain import Chain
from calque.operator.service import Bucket
from calque.operator.services.s3.address import Endpoint
from calque.operator.services.s3.client import Client, Link, Request
from calque.operator.services.s3.config import S3Config
from calque.operator.services.s3.replies import blocks, leaves, moment
from calque.operator.services.s3.signing import Signer
from calque.operator.uri import ServiceUri

_ANY = "any-bucket"
"""Endpoints are found for a bucket; this one stands for none and is in no request."""


class _ServerLink(Link):
    def _make(self) -> tuple[Endpoint, Pool, Signer]:
        endpoint, pool, signer = super()._make()
        return replace(endpoint, prefix=endpoint.prefix.removesuffix(f"/{_ANY}")), pool, signer


class _ServerClient(Client):
    def location(self, key: str | None) -> str:
        return "s3://"


def list_buckets(uri: ServiceUri, options: Mapping[str, object], chain: Chain) -> Iterator[Bucket]:
    """Every bucket that the credentials own, by name."""
    settled = {**options, "addressing": "path"}
    config = S3Config.parse(replace(uri, host=_ANY, path=""), settled)
    link = _ServerLink(config)
    client = _ServerClient(link, chain)
    turning, token = PageGuard("s3://"), ""
    try:
        while True:
            query = [("continuation-token", token)] if token else []
            body = client.send("list", "", Request("GET", None, query=query)).body
            if b"ListAllMyBucketsResult" not in body:
                raise Unexpected("s3://: the reply to a listing of buckets is none")
            for block in blocks(body, "Bucket"):
                fields = leaves(block)
                yield Bucket(fields.get("Name", ""), moment(fields.get("CreationDate")))
            token = leaves(body).get("ContinuationToken", "")
            if not token:
                return
            turning.check(token, ())
    finally:
        link.close()
