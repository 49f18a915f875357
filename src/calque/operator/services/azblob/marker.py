"""The mark of a conditional request, by which it knows its own work again.

A conditional write whose answer was lost meets its own blob when it is repeated, and the service
answers that the condition is false. The mark, one entry of user metadata that calque hides from its
callers, tells that from a race that was lost.
"""

from __future__ import annotations

import secrets

from calque.errors import NotFound
from calque.operator.services.azblob import resource
from calque.operator.services.azblob.requests import Requests
from calque.values import Metadata


def fresh() -> str:
    """An id nobody else has."""
    return secrets.token_hex(12)


def made_by(requests: Requests, path: str, mark: str) -> Metadata | None:
    """The blob, if it bears the mark."""
    try:
        headers = requests.head(path)
    except NotFound:
        return None
    if resource.mark_of(headers) != mark:
        return None
    return resource.metadata_of(path, headers)
