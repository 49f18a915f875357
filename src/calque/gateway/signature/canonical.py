"""The parts of Signature Version 4: the canonical request, its scope, and keys of a day."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from urllib.parse import quote, unquote_to_bytes

from calque.gateway.errors import S3Error
from calque.gateway.request import Headers, Request

ALGORITHM = "AWS4-HMAC-SHA256"
EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()
UNSIGNED = "UNSIGNED-PAYLOAD"
SKEW = 15 * 60
"""Seconds that two clocks may differ."""

_STAMP = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z", re.ASCII)
_SPACES = re.compile(r"[ \t]+")


@dataclass(frozen=True, slots=True)
class Scope:
    """For what a signature was made."""

    access_key_id: str = field(repr=False)
    day: str
    region: str
    service: str

    def __str__(self) -> str:
        return f"{self.day}/{self.region}/{self.service}/aws4_request"


@dataclass(frozen=True, slots=True)
class SigningKey:
    """The key of a day, and what chunks that follow the head are signed with."""

    key: bytes = field(repr=False)
    scope: Scope
    stamp: str
    seed: str = field(repr=False)
    """The signature of the head: the first chunk is chained to it."""

    def sign(self, kind: str, *lines: str) -> str:
        text = "\n".join((kind, self.stamp, str(self.scope), *lines))
        return hmac.digest(self.key, text.encode("latin-1"), "sha256").hex()


def parse_credential(text: str) -> Scope | None:
    """A credential, ``id/day/region/service/aws4_request``; None when it is none."""
    parts = text.rsplit("/", 4)
    if len(parts) != 5 or parts[4] != "aws4_request" or not all(parts):
        return None
    return Scope(*parts[:4])


def parse_stamp(text: str) -> datetime | None:
    """A time as ``20130524T000000Z``; None when it is none."""
    found = _STAMP.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = map(int, found.groups())
    try:
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None


@lru_cache(maxsize=1024)
def derive_key(secret: str, day: str, region: str, service: str) -> bytes:
    """The signing key of a day, region and service."""
    key = ("AWS4" + secret).encode("latin-1")
    for part in (day, region, service, "aws4_request"):
        key = hmac.digest(key, part.encode("latin-1"), "sha256")
    return key


def canonical_requests(
    request: Request,
    query: Iterable[tuple[str, str]],
    signed: Sequence[str],
    payload: str,
) -> Iterator[str]:
    """The request as its sender may have signed it: the path as sent, and in its strict form.

    Most clients encode a path once and sign what they send. Some send a character plain and sign
    it encoded.
    """
    search = "&".join(sorted(f"{encode(name)}={encode(value)}" for name, value in query))
    lines = "".join(f"{name}:{_fold(request.headers.get(name, ''))}\n" for name in signed)
    tail = f"{search}\n{lines}\n{';'.join(signed)}\n{payload}"
    yield f"{request.method}\n{request.path}\n{tail}"
    strict = encode_path(request.path)
    if strict != request.path:
        yield f"{request.method}\n{strict}\n{tail}"


def encode(text: str) -> str:
    """Percent-encoded as Version 4 wants it; ``text`` has one character a byte."""
    return quote(text.encode("latin-1"), safe="-_.~")


def encode_path(path: str) -> str:
    return quote(unquote_to_bytes(path.encode("latin-1")), safe="/-_.~")


def sign_canonical(key: bytes, stamp: str, scope: Scope, canonical: str) -> str:
    digest = hashlib.sha256(canonical.encode("latin-1")).hexdigest()
    text = f"{ALGORITHM}\n{stamp}\n{scope}\n{digest}"
    return hmac.digest(key, text.encode("latin-1"), "sha256").hex()


def is_same(one: str, other: str) -> bool:
    """Compared in constant time."""
    return hmac.compare_digest(one.encode("latin-1"), other.encode("latin-1"))


def require_signed(headers: Headers, signed: Sequence[str]) -> None:
    """AccessDenied unless the host and every ``x-amz-*`` header were signed."""
    left = [name for name in headers if name.startswith("x-amz-") and name not in signed]
    if "host" not in signed:
        left.append("host")
    if left:
        raise S3Error(
            "AccessDenied",
            "There were headers present in the request which were not signed",
            fields={"HeadersNotSigned": ", ".join(sorted(left))},
        )


def require_near(moment: datetime, now: datetime) -> None:
    """RequestTimeTooSkewed for a clock more than 15 minutes off."""
    if abs((now - moment).total_seconds()) > SKEW:
        raise S3Error(
            "RequestTimeTooSkewed",
            "The difference between the request time and the current time is too large.",
            fields={"MaxAllowedSkewMilliseconds": str(SKEW * 1000)},
        )


def mismatch() -> S3Error:
    return S3Error(
        "SignatureDoesNotMatch",
        "The request signature we calculated does not match the signature you provided. "
        "Check your key and signing method.",
    )


def _fold(value: str) -> str:
    if "  " in value or "\t" in value:
        value = _SPACES.sub(" ", value)
    return value.strip(" ")
