"""Requests that are signed now and sent later, by whoever has them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, get_args

from calque.errors import InvalidInput, Unsupported
from calque.operator import paths
from calque.operator.service import Presigning, Service

PresignedVerb = Literal["read", "stat", "write", "delete"]

METHODS: Mapping[str, str] = {"read": "GET", "stat": "HEAD", "write": "PUT", "delete": "DELETE"}


@dataclass(frozen=True, slots=True)
class PresignedRequest:
    """A request that anybody may send until it expires. Its URL is a secret: repr hides it."""

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers that must be sent with it."""


def presign(
    service: Service, verb: PresignedVerb, path: str, expires: timedelta | float
) -> PresignedRequest:
    """Sign a request for one object; nothing is sent, and nothing is looked up."""
    if verb not in get_args(PresignedVerb):
        raise InvalidInput(
            f"{verb!r} cannot be signed for later", hint=f"One of {', '.join(METHODS)}."
        )
    paths.file_path(path, f"presign a {verb} of")
    seconds = expires.total_seconds() if isinstance(expires, timedelta) else expires
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds >= 1:
        raise InvalidInput(f"a signature lasts a second at least, not {expires!r}")
    if not isinstance(service, Presigning):
        raise Unsupported(
            f"{service.scheme}:// has no signed URLs",
            hint="S3, GCS and Azure have them. A store of calque has them over S3: calque serve.",
        )
    url, headers = service.presign(METHODS[verb], path, int(seconds))
    return PresignedRequest(METHODS[verb], url, headers)
