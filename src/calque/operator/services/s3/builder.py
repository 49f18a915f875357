"""What the registry calls to open ``s3://``."""

from __future__ import annotations

from collections.abc import Mapping

from calque.operator.layers.chain import Chain
from calque.operator.services.s3.buckets import list_buckets
from calque.operator.services.s3.client import Link
from calque.operator.services.s3.config import SECRETS, S3Config
from calque.operator.services.s3.service import S3Service
from calque.operator.uri import ServiceUri

__all__ = ["SECRETS", "build", "list_buckets"]


def build(uri: ServiceUri, options: Mapping[str, object], chain: Chain) -> S3Service:
    """An S3 service; credentials are looked for when the first request needs them."""
    config = S3Config.parse(uri, options)
    return S3Service(config, Link(config), chain)
