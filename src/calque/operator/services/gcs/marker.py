"""The mark of a conditional request, by which it knows its own work again.

A conditional write whose answer was lost meets its own object when it is repeated, and the service
answers that the condition is false. The mark, one entry of user metadata that calque hides from its
callers, tells that from a race that was lost.
"""

from __future__ import annotations

import secrets
from typing import Any

from calque.errors import NotFound
from calque.operator.services.gcs.requests import Requests
from calque.operator.services.gcs.resource import MARK, metadata_of
from calque.values import Metadata


def fresh() -> str:
    """An id nobody else has."""
    return secrets.token_hex(12)


def marked(resource: dict[str, Any], mark: str) -> dict[str, Any]:
    """The resource with the mark in its user metadata."""
    return {**resource, "metadata": {**resource.get("metadata", {}), MARK: mark}}


def made_by(requests: Requests, path: str, mark: str) -> Metadata | None:
    """The object, if it bears the mark."""
    try:
        resource = requests.resource(path)
    except NotFound:
        return None
    if (resource.get("metadata") or {}).get(MARK) != mark:
        return None
    return metadata_of(resource, path)
