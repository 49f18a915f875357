"""Signature Version 4 in the Authorization header."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from calque.gateway.errors import S3Error
from calque.gateway.request import Headers, Request, parse_query
from calque.gateway.signature import canonical
from calque.gateway.signature.canonical import ALGORITHM, Scope, SigningKey


@dataclass(frozen=True, slots=True)
class Authorization:
    """What the header says."""

    scope: Scope
    signed: tuple[str, ...]
    signature: str = field(repr=False)


def parse_authorization(text: str) -> Authorization:
    """AuthorizationHeaderMalformed, without showing it, unless every part is there."""
    kind, _, rest = text.partition(" ")
    if kind != ALGORITHM:
        raise S3Error(
            "InvalidRequest",
            "The authorization mechanism you have provided is not supported. "
            f"Please use {ALGORITHM}.",
        )
    pairs = [each.strip().partition("=") for each in rest.split(",")]
    parts = {name: value for name, _, value in pairs}
    scope = canonical.parse_credential(parts.get("Credential", ""))
    if scope is None or not parts.get("SignedHeaders") or not parts.get("Signature"):
        raise S3Error("AuthorizationHeaderMalformed", "The authorization header is malformed.")
    if scope.service != "s3":
        raise S3Error(
            "AuthorizationHeaderMalformed",
            "The authorization header is malformed; the service must be s3.",
        )
    return Authorization(scope, tuple(parts["SignedHeaders"].split(";")), parts["Signature"])


def verify_header(
    request: Request, find_secret: Callable[[str], str], now: datetime
) -> tuple[SigningKey, str]:
    """The key that the request was signed with, and what its payload is said to be."""
    given = parse_authorization(request.headers["authorization"])
    secret = find_secret(given.scope.access_key_id)
    payload = request.headers.get("x-amz-content-sha256")
    if payload is None:
        raise S3Error(
            "InvalidRequest", "Missing required header for this request: x-amz-content-sha256"
        )
    moment = _moment(request.headers)
    canonical.require_near(moment, now)
    stamp = request.headers.get("x-amz-date") or moment.strftime("%Y%m%dT%H%M%SZ")
    if given.scope.day != stamp[:8]:
        raise S3Error(
            "AuthorizationHeaderMalformed",
            "The authorization header is malformed; its date is not that of the request.",
        )
    canonical.require_signed(request.headers, given.signed)
    scope = given.scope
    key = canonical.derive_key(secret, scope.day, scope.region, scope.service)
    for text in canonical.canonical_requests(
        request, parse_query(request.query), given.signed, payload
    ):
        made = canonical.sign_canonical(key, stamp, scope, text)
        if canonical.is_same(made, given.signature):
            return SigningKey(key, scope, stamp, given.signature), payload
    raise canonical.mismatch()


def _moment(headers: Headers) -> datetime:
    stamp = headers.get("x-amz-date")
    moment = None
    if stamp is not None:
        moment = canonical.parse_stamp(stamp)
    elif "date" in headers:
        try:
            found = parsedate_to_datetime(headers["date"])
            moment = (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError):
            moment = None
    if moment is None:
        raise S3Error(
            "AccessDenied", "AWS authentication requires a valid Date or x-amz-date header"
        )
    return moment
