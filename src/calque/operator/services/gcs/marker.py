"""The mark of a conditional request: an entry of user metadata that calque hides from its callers.

See ``calque.operator.services.conditional`` for what it is good for.
"""

from __future__ import annotations

from typing import Any

from calque.errors import NotFound
from calque.operator.services.gcs.client import Client
from calque.operator.services.gcs.resource import MARK, metadata_of
from calque.operator.services.gcs.stat import get_resource
from calque.values import Metadata


def add_mark(resource: dict[str, Any], mark: str) -> dict[str, Any]:
    """The resource with the mark in its user metadata."""
    return {**resource, "metadata": {**resource.get("metadata", {}), MARK: mark}}


def find_marked(client: Client, path: str, mark: str) -> Metadata | None:
    """The object, if it bears the mark."""
    try:
        resource = get_resource(client, path)
    except NotFound:
        return None
    found = metadata_of(resource, path)  # first: it refuses what is no metadata
    return found if (resource.get("metadata") or {}).get(MARK) == mark else None
