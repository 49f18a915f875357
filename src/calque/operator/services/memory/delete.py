"""An object removed."""

from __future__ import annotations

from calque.operator.options import DeleteOptions
from calque.operator.services.memory.client import Client


def delete(client: Client, path: str, options: DeleteOptions) -> None:
    """Remove the object; one that is not there is no error."""
    key = client.key(path)
    client.send("delete", path, lambda: client.store.remove(key, options.if_match, options.version))
