"""Signature Version 4 in the query: a link that is good for a while."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from calque.gateway.errors import S3Error
from calque.gateway.request import Request, parse_query
from calque.gateway.signature import canonical
from calque.gateway.signature.canonical import ALGORITHM, UNSIGNED, SigningKey

LONGEST = 7 * 24 * 3600
"""Seconds that a link may be good for."""

_NEEDED = (
    "X-Amz-Algorithm",
    "X-Amz-Credential",
    "X-Amz-Date",
    "X-Amz-Expires",
    "X-Amz-SignedHeaders",
    "X-Amz-Signature",
)


def verify_presigned(
    request: Request, find_secret: Callable[[str], str], now: datetime
) -> tuple[SigningKey, str]:
    """The key that the link was signed with, and what its payload is said to be."""
    pairs = parse_query(request.query)
    query = dict(pairs)
    if any(not query.get(name) for name in _NEEDED):
        raise _refuse(f"Query-string authentication version 4 requires {', '.join(_NEEDED)}.")
    if query["X-Amz-Algorithm"] != ALGORITHM:
        raise _refuse(f"X-Amz-Algorithm only supports {ALGORITHM}.")
    scope = canonical.parse_credential(query["X-Amz-Credential"])
    moment = canonical.parse_stamp(query["X-Amz-Date"])
    if scope is None or moment is None or scope.service != "s3":
        raise _refuse("X-Amz-Credential or X-Amz-Date is malformed.")
    if scope.day != query["X-Amz-Date"][:8]:
        raise _refuse("X-Amz-Credential and X-Amz-Date are of different days.")
    secret = find_secret(scope.access_key_id)
    _require_time(moment, _lifetime(query["X-Amz-Expires"]), now)
    signed = query["X-Amz-SignedHeaders"].split(";")
    canonical.require_signed(request.headers, signed)
    payload = request.headers.get(
        "x-amz-content-sha256", query.get("X-Amz-Content-Sha256", UNSIGNED)
    )
    key = canonical.derive_key(secret, scope.day, scope.region, scope.service)
    rest = [pair for pair in pairs if pair[0] != "X-Amz-Signature"]
    for text in canonical.canonical_requests(request, rest, signed, payload):
        made = canonical.sign_canonical(key, query["X-Amz-Date"], scope, text)
        if canonical.is_same(made, query["X-Amz-Signature"]):
            return SigningKey(key, scope, query["X-Amz-Date"], made), payload
    raise canonical.mismatch()


def expired() -> S3Error:
    return S3Error("AccessDenied", "Request has expired")


def _lifetime(text: str) -> timedelta:
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise _refuse("X-Amz-Expires should be a number.")
    if not 1 <= int(text) <= LONGEST:
        raise _refuse("X-Amz-Expires must be from one second to a week (604800 seconds).")
    return timedelta(seconds=int(text))


def _require_time(moment: datetime, lifetime: timedelta, now: datetime) -> None:
    if moment - now > timedelta(seconds=canonical.SKEW):
        raise S3Error("AccessDenied", "Request is not valid yet")
    if now > moment + lifetime:
        raise expired()


def _refuse(why: str) -> S3Error:
    return S3Error("AuthorizationQueryParametersError", why)
