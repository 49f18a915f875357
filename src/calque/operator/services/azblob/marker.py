"""The mark of a conditional request: an entry of user metadata that calque hides from its callers.

See ``calque.operator.services.conditional`` for what it is good for. Blocks bear a mark of another
kind, in their ids (see ``blocks``), because they have no metadata.
"""

from __future__ import annotations

from calque.errors import NotFound
from calque.operator.services.azblob import resource
from calque.operator.services.azblob.client import Client
from calque.operator.services.azblob.stat import head
from calque.values import Metadata


def find_marked(client: Client, path: str, mark: str) -> Metadata | None:
    """The blob, if it bears the mark."""
    try:
        headers = head(client, path)
    except NotFound:
        return None
    if resource.mark_of(headers) != mark:
        return None
    return resource.metadata_of(path, headers)
