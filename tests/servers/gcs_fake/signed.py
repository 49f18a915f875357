"""The XML API as far as signed URLs need it: one object by its path, proven by a V4 signature."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import quote, unquote

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from tests.servers.gcs_fake import objects
from tests.servers.gcs_fake.model import World
from tests.servers.gcs_fake.replies import ApiError, Reply, Request

WEEK = 604_800
ALGORITHM = "GOOG4-RSA-SHA256"
Accounts = Mapping[str, RSAPublicKey]


def answer(world: World, request: Request, accounts: Accounts) -> Reply:
    """What a stranger gets who was given a signed URL."""
    try:
        _verify(request, accounts, world.now())
        with world.lock:
            return _serve(world, request)
    except ApiError as error:
        body = f"<Error><Code>{error.reason}</Code><Message>{error.message}</Message></Error>"
        return Reply(error.status, body.encode(), {"Content-Type": "application/xml"})


def _verify(request: Request, accounts: Accounts, now: float) -> None:
    query = dict(request.query)
    signature = query.pop("X-Goog-Signature")
    if query.get("X-Goog-Algorithm") != ALGORITHM:
        raise ApiError(400, "InvalidArgument", "unknown algorithm")
    email, _, scope = query["X-Goog-Credential"].partition("/")
    stamp, seconds = query["X-Goog-Date"], int(query["X-Goog-Expires"])
    if scope != f"{stamp[:8]}/auto/storage/goog4_request" or not 1 <= seconds <= WEEK:
        raise ApiError(400, "InvalidArgument", "a scope or an expiry that cannot be")
    began = datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
    if now > began + seconds:
        raise ApiError(400, "ExpiredToken", "The provided token has expired.")
    if "host" not in query["X-Goog-SignedHeaders"].split(";"):
        raise ApiError(400, "InvalidArgument", "the host must be signed")
    key = accounts.get(email)
    if key is None:
        raise ApiError(403, "AccessDenied", f"{email} does not exist")
    try:
        text = _text_to_sign(request, query, scope).encode()
        key.verify(bytes.fromhex(signature), text, padding.PKCS1v15(), hashes.SHA256())
    except (InvalidSignature, ValueError) as error:
        raise ApiError(403, "SignatureDoesNotMatch", "Access denied.") from error


def _text_to_sign(request: Request, query: dict[str, str], scope: str) -> str:
    pairs = sorted((quote(name, safe="~"), quote(value, safe="~")) for name, value in query.items())
    names = query["X-Goog-SignedHeaders"].split(";")
    canonical = [
        request.method,
        quote(unquote(request.path), safe="/~"),
        "&".join(f"{name}={value}" for name, value in pairs),
        *(f"{name}:{request.headers.get(name, '').strip()}" for name in names),
        "",
        ";".join(names),
        request.headers.get("x-goog-content-sha256", "UNSIGNED-PAYLOAD"),
    ]
    digest = hashlib.sha256("\n".join(canonical).encode()).hexdigest()
    return "\n".join([ALGORITHM, query["X-Goog-Date"], scope, digest])


def _serve(world: World, request: Request) -> Reply:
    bucket, _, name = unquote(request.path).removeprefix("/").partition("/")
    world.journal.entries.append(f"signed {request.method.lower()} {name}")
    if request.method in ("GET", "HEAD"):
        media = Request("GET", request.path, {"alt": "media"}, request.headers, b"")
        reply = objects.get(world, media, bucket, name)
        return reply if request.method == "GET" else Reply(reply.status, b"", reply.headers)
    if request.method == "PUT":
        kind = request.headers.get("content-type", "application/octet-stream")
        world.store(world.bucket(bucket), name, request.body, {"contentType": kind})
        return Reply(200)
    return objects.delete(world, Request("DELETE", request.path, {}, {}, b""), bucket, name)
