"""A request for a blob, signed in its URL for others to send."""

from __future__ import annotations

from collections.abc import Mapping

from calque.operator.services.azblob.client import Client


def presign(client: Client, method: str, path: str, seconds: int) -> tuple[str, Mapping[str, str]]:
    """The URL, and the headers that must be sent with it; nothing is sent."""
    blob = client.key(path)
    query = client.link.credentials.presign(method, blob, seconds)
    # A write does not say by itself which kind of blob it makes, and Azure asks.
    headers = {"x-ms-blob-type": "BlockBlob"} if method == "PUT" else {}
    return client.link.url(blob, query), headers
