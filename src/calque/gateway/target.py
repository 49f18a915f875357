"""Which bucket and object a request means: by its path, or by its host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from calque.gateway.errors import S3Error
from calque.gateway.request import Request


@dataclass(frozen=True, slots=True)
class Target:
    """``host_bucket`` is the bucket where the host named it."""

    bucket: str
    key: str
    host_bucket: str | None = None


LONGEST_KEY = 1024
"""Bytes of a key in UTF-8."""


def find_target(request: Request, domains: Sequence[str]) -> Target:
    """Bucket and key; both may be empty. InvalidURI for what is no text in UTF-8."""
    found = _find_target(request, domains)
    if found.key and not found.bucket:
        # ``//name`` names nothing; it must not be taken for the list of buckets.
        raise S3Error("InvalidURI", "Couldn't parse the specified URI: the bucket has no name.")
    require_key_length(found.key)
    return found


def require_key_length(key: str) -> None:
    """KeyTooLongError beyond what S3 takes."""
    if len(key.encode()) > LONGEST_KEY:
        raise S3Error("KeyTooLongError", "Your key is too long")


def _find_target(request: Request, domains: Sequence[str]) -> Target:
    bucket = _bucket_of_host(request.headers.get("host", ""), domains)
    path = request.path
    if not path.startswith("/"):
        raise S3Error("InvalidURI", "Couldn't parse the specified URI.")
    if bucket is not None:
        return Target(bucket, decode(path[1:]), bucket)
    first, _, rest = path[1:].partition("/")
    return Target(decode(first), decode(rest))


def _bucket_of_host(host: str, domains: Sequence[str]) -> str | None:
    name = host.rpartition(":")[0] if ":" in host and not host.endswith("]") else host
    name = name.lower().rstrip(".")
    for domain in domains:
        bucket = name.removesuffix("." + domain.lower())
        if bucket != name:
            return bucket
    return None


def decode(text: str) -> str:
    """Percent-encoded text as what it means."""
    try:
        return unquote_to_bytes(text.encode("latin-1")).decode()
    except UnicodeError as error:
        raise S3Error("InvalidURI", "Couldn't parse the specified URI.") from error
