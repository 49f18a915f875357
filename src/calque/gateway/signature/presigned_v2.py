"""Links signed with Version 2, which boto3 makes for a custom endpoint unless told otherwise."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from calque.gateway.errors import S3Error
from calque.gateway.request import Headers, Request, parse_query
from calque.gateway.signature import canonical
from calque.gateway.signature.presigned import expired

_SIGNED_PARAMETERS = frozenset(
    {
        "accelerate",
        "acl",
        "cors",
        "delete",
        "lifecycle",
        "location",
        "logging",
        "notification",
        "partNumber",
        "policy",
        "requestPayment",
        "response-cache-control",
        "response-content-disposition",
        "response-content-encoding",
        "response-content-language",
        "response-content-type",
        "response-expires",
        "restore",
        "tagging",
        "torrent",
        "uploadId",
        "uploads",
        "versionId",
        "versioning",
        "versions",
        "website",
    }
)
CARRIED = frozenset({"content-md5", "content-type"})
"""Headers that may stand in the query."""
_OF_THE_SIGNATURE = frozenset({"AWSAccessKeyId", "Signature", "Expires"})


def verify_presigned_v2(
    request: Request, find_secret: Callable[[str], str], now: datetime, bucket: str | None
) -> None:
    """Returns when the link is good; ``bucket`` is the one that the host names, if it does."""
    pairs = parse_query(request.query)
    query = dict(pairs)
    expires = query["Expires"]
    if not (expires.isascii() and expires.isdigit() and len(expires) <= 11):
        raise S3Error("AccessDenied", "Invalid date (should be seconds since epoch)")
    secret = find_secret(query["AWSAccessKeyId"])
    if now.timestamp() > int(expires):
        raise expired()
    for path in dict.fromkeys((request.path, canonical.encode_path(request.path))):
        text = _string_to_sign(request, pairs, expires, path, bucket)
        made = hmac.digest(secret.encode("latin-1"), text.encode("latin-1"), "sha1")
        if canonical.is_same(base64.b64encode(made).decode(), query["Signature"]):
            return
    raise canonical.mismatch()


def _string_to_sign(
    request: Request, pairs: list[tuple[str, str]], expires: str, path: str, bucket: str | None
) -> str:
    headers = request.headers
    amazon = sorted(name for name in headers if name.startswith("x-amz-"))
    lines = "".join(f"{name}:{' '.join(headers[name].split())}\n" for name in amazon)
    resources = sorted(pair for pair in pairs if _is_signed(pair[0]))
    search = "&".join(f"{name}={value}" if value else name for name, value in resources)
    resource = (f"/{bucket}{path}" if bucket else path) + (f"?{search}" if search else "")
    md5, kind = headers.get("content-md5", ""), headers.get("content-type", "")
    return f"{request.method}\n{md5}\n{kind}\n{expires}\n{lines}{resource}"


def _is_signed(name: str) -> bool:
    """Version 2 signs what chooses a verb; those of our own extensions, too."""
    return name in _SIGNED_PARAMETERS or name.startswith("calque-")


def move_headers(request: Request) -> Request:
    """The request with the headers that such a link carries in its query, where they are signed
    as headers; one that came as a header too is taken from there."""
    pairs = parse_query(request.query)
    if not is_presigned_v2(dict(pairs)):
        return request
    moved = [
        (name.lower(), value)
        for name, value in pairs
        if name.lower().startswith("x-amz-") or name.lower() in CARRIED
        if name.lower() not in request.headers
    ]
    return replace(request, headers=Headers([*request.headers.items(), *moved]))


def is_presigned_v2(query: dict[str, str]) -> bool:
    """Whether the query carries such a signature."""
    return query.keys() >= _OF_THE_SIGNATURE
