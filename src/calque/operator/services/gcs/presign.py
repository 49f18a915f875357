"""A request for an object, signed in its URL for others to send (V4 signatures).

The URL is one of the XML API: the JSON API takes no signature in a query.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import quote, urlsplit

from calque.errors import InvalidInput
from calque.operator.services.gcs.client import Client
from calque.operator.services.gcs.credentials import SigningKey

LONGEST = 7 * 24 * 3600
"""GCS takes no signature that is to last longer."""
_ALGORITHM = "GOOG4-RSA-SHA256"


def presign(client: Client, method: str, path: str, seconds: int) -> tuple[str, Mapping[str, str]]:
    """The URL, and the headers that must be sent with it: none. Nothing is sent."""
    if seconds > LONGEST:
        raise InvalidInput(f"a signature of GCS lasts a week at most, not {seconds} seconds")
    config = client.link.config
    parts = urlsplit(config.endpoint)
    target = f"{parts.path.rstrip('/')}/{_encode(config.bucket)}/{_encode(client.key(path), '/')}"
    query = {} if config.user_project is None else {"userProject": config.user_project}
    if not config.anonymous:
        key = client.link.credentials.signing_key()
        query = sign_query(key, method, parts.netloc, target, query, seconds, datetime.now(UTC))
    tail = f"?{_join(query)}" if query else ""
    return f"{parts.scheme}://{parts.netloc}{target}{tail}", {}


def sign_query(
    key: SigningKey,
    method: str,
    host: str,
    target: str,
    query: Mapping[str, str],
    seconds: int,
    now: datetime,
) -> dict[str, str]:
    """The query with all that a signature consists of; ``target`` is the encoded path."""
    scope = f"{now:%Y%m%d}/auto/storage/goog4_request"
    signed = {
        **query,
        "X-Goog-Algorithm": _ALGORITHM,
        "X-Goog-Credential": f"{key.email}/{scope}",
        "X-Goog-Date": f"{now:%Y%m%dT%H%M%SZ}",
        "X-Goog-Expires": str(seconds),
        "X-Goog-SignedHeaders": "host",
    }
    # The body is the sender's and not known yet. The block of headers ends in a blank line.
    asked = [method, target, _join(signed), f"host:{host}\n", "host", "UNSIGNED-PAYLOAD"]
    digest = hashlib.sha256("\n".join(asked).encode()).hexdigest()
    text = "\n".join([_ALGORITHM, signed["X-Goog-Date"], scope, digest])
    return {**signed, "X-Goog-Signature": key.sign(text.encode()).hex()}


def _join(query: Mapping[str, str]) -> str:
    """A query in the order that is signed: by the names' bytes."""
    return "&".join(f"{_encode(name)}={_encode(query[name])}" for name in sorted(query))


def _encode(text: str, safe: str = "") -> str:
    return quote(text, safe=f"~{safe}")
