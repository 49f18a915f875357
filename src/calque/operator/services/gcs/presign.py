"""A request for an object, signed in its URL for others to send (V4 signatures).

The URL is one of the XML API: the JSON API takes no signature in a query.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import quote, urlsplit

from google.auth.exceptions import GoogleAuthError
from google.oauth2 import service_account

from calque.errors import InvalidInput, PermissionDenied
from calque.operator.services.gcs.client import Client

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
        account = client.link.credentials.service_account()
        query = _sign(account, method, parts.netloc, target, query, seconds)
    tail = f"?{_join(query)}" if query else ""
    return f"{parts.scheme}://{parts.netloc}{target}{tail}", {}


def _sign(
    account: service_account.Credentials,
    method: str,
    host: str,
    target: str,
    query: Mapping[str, str],
    seconds: int,
) -> dict[str, str]:
    """The query with all that a signature consists of."""
    now = datetime.now(UTC)
    scope = f"{now:%Y%m%d}/auto/storage/goog4_request"
    signed = {
        **query,
        "X-Goog-Algorithm": _ALGORITHM,
        "X-Goog-Credential": f"{account.signer_email}/{scope}",
        "X-Goog-Date": f"{now:%Y%m%dT%H%M%SZ}",
        "X-Goog-Expires": str(seconds),
        "X-Goog-SignedHeaders": "host",
    }
    # A body is not known yet, so none is signed; two line ends part the headers from their names.
    asked = [method, target, _join(signed), f"host:{host}\n", "host", "UNSIGNED-PAYLOAD"]
    digest = hashlib.sha256("\n".join(asked).encode()).hexdigest()
    text = "\n".join([_ALGORITHM, signed["X-Goog-Date"], scope, digest])
    try:
        signature: bytes = account.sign_bytes(text.encode())
    except (GoogleAuthError, ValueError) as error:
        raise PermissionDenied("the key of the service account cannot sign") from error
    return {**signed, "X-Goog-Signature": signature.hex()}


def _join(query: Mapping[str, str]) -> str:
    """A query in the order that is signed: by the names' bytes."""
    return "&".join(f"{_encode(name)}={_encode(query[name])}" for name in sorted(query))


def _encode(text: str, safe: str = "") -> str:
    return quote(text, safe=f"~{safe}")
