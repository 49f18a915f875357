"""What the registry calls."""

from __future__ import annotations

from collections.abc import Mapping

from calque.operator.layers.chain import Chain
from calque.operator.services.azblob.buckets import list_buckets
from calque.operator.services.azblob.client import Client, Link
from calque.operator.services.azblob.config import SECRETS, AzblobConfig
from calque.operator.services.azblob.service import AzblobService
from calque.operator.uri import ServiceUri

__all__ = ["SECRETS", "build", "list_buckets", "split"]


def build(uri: ServiceUri, options: Mapping[str, object], chain: Chain) -> AzblobService:
    """The service behind ``az://container/root`` or ``az://ACCOUNT.blob/container/root``.

    Nothing is sent.
    """
    return AzblobService(Client(Link(AzblobConfig.parse(uri, options)), chain))


def split(uri: str) -> tuple[str, str]:
    """A URI of one blob, cut into the URI of its container and the blob's path."""
    scheme, _, rest = uri.partition("://")
    host, _, path = rest.partition("/")
    if "." not in host:
        return f"{scheme}://{host}", path
    container, _, path = path.partition("/")
    return f"{scheme}://{host}/{container}", path
