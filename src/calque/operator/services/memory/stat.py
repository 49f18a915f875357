"""An object looked at."""

from __future__ import annotations

from calque.operator.services.memory.client import Client
from calque.values import Metadata


def stat(client: Client, path: str, version: str | None = None) -> Metadata:
    """What is known of an object, or of an old version of it."""
    key = client.key(path)
    stored = client.send("stat", path, lambda: client.store.get(key, version))
    return client.localize(stored.metadata)
