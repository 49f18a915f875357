"""Who sent a request, by whichever form of signature it carries."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from calque.gateway.errors import S3Error
from calque.gateway.keys import AccessKeys, S3Key
from calque.gateway.request import Request, parse_query
from calque.gateway.signature.canonical import UNSIGNED, SigningKey
from calque.gateway.signature.header import verify_header
from calque.gateway.signature.presigned import verify_presigned
from calque.gateway.signature.presigned_v2 import is_presigned_v2, verify_presigned_v2


@dataclass(frozen=True, slots=True)
class Identity:
    """A key that signed a request, and how its body is to be verified."""

    key: S3Key
    payload: str = UNSIGNED
    """The hash of the body, or how it is sent."""
    signing: SigningKey | None = None
    """What signed chunks are chained to."""


def authenticate(
    request: Request, keys: AccessKeys, now: datetime, host_bucket: str | None
) -> Identity:
    """The key that signed the request; an error of S3 when none did, or not rightly."""
    query = dict(parse_query(request.query))
    finder = KeyFinder(keys)
    if "x-amz-security-token" in request.headers or "X-Amz-Security-Token" in query:
        raise S3Error("InvalidToken", "The provided token is malformed or otherwise invalid.")
    has_header = "authorization" in request.headers
    if has_header and ("X-Amz-Signature" in query or "Signature" in query):
        raise S3Error("InvalidArgument", "Only one auth mechanism allowed")
    if has_header:
        signing, payload = verify_header(request, finder.find_secret, now)
        return Identity(finder.found(), payload, signing)
    if "X-Amz-Algorithm" in query or "X-Amz-Signature" in query:
        signing, payload = verify_presigned(request, finder.find_secret, now)
        return Identity(finder.found(), payload, signing)
    if is_presigned_v2(query):
        verify_presigned_v2(request, finder.find_secret, now, host_bucket)
        return Identity(finder.found())
    raise S3Error("AccessDenied", "Access Denied: the request is not signed.")


class KeyFinder:
    """Looks a key up once, and remembers which it was."""

    def __init__(self, keys: AccessKeys) -> None:
        self._keys = keys
        self._key: S3Key | None = None

    def find_secret(self, access_key_id: str) -> str:
        self._key = require_key(self._keys, access_key_id)
        return self._key.secret

    def found(self) -> S3Key:
        assert self._key is not None
        return self._key


def require_key(keys: AccessKeys, access_key_id: str) -> S3Key:
    """The key of an id; InvalidAccessKeyId, which does not repeat it, when there is none."""
    key = keys.find(access_key_id)
    if key is None:
        raise S3Error(
            "InvalidAccessKeyId",
            "The AWS Access Key Id you provided does not exist in our records.",
        )
    return key
