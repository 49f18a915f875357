"""What the registry calls."""

from __future__ import annotations

from collections.abc import Mapping

from calque.operator.layers.chain import Chain
from calque.operator.services.gcs.buckets import list_buckets
from calque.operator.services.gcs.client import Client, Link
from calque.operator.services.gcs.config import SECRETS, GcsConfig
from calque.operator.services.gcs.service import GcsService
from calque.operator.uri import ServiceUri

__all__ = ["SECRETS", "build", "list_buckets"]


def build(uri: ServiceUri, options: Mapping[str, object], chain: Chain) -> GcsService:
    """The service behind ``gs://bucket/root``. Nothing is sent."""
    return GcsService(Client(Link(GcsConfig.parse(uri, options)), chain))
