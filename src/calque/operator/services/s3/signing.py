"""Signature Version 4 for S3, as botocore's ``S3SigV4Auth`` makes it, at a fraction of its cost.

The path is encoded once and never normalised; every header is signed but those a proxy may change.
A test holds each signature against botocore's own.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()
UNSIGNED = "UNSIGNED-PAYLOAD"
_NEVER_SIGNED = frozenset({"expect", "transfer-encoding", "user-agent", "x-amzn-trace-id"})


@dataclass(frozen=True, slots=True)
class Keys:
    """Credentials of one moment; their repr tells nothing."""

    access_key: str
    secret_key: str = field(repr=False)
    token: str | None = field(default=None, repr=False)

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("credentials are never pickled: they are found anew where they are needed")


class Signer:
    """Signs requests for one region and service; remembers the day's derived key."""

    def __init__(self, region: str, service: str = "s3") -> None:
        self._region = region
        self._service = service
        self._derived: tuple[str, str, bytes] = ("", "", b"")

    def sign(
        self,
        keys: Keys,
        method: str,
        path: str,
        query: Sequence[tuple[str, str]],
        headers: Mapping[str, str],
        payload: str,
        *,
        now: float | None = None,
    ) -> dict[str, str]:
        """All headers to send: those given (lower-case names, ``host`` among them) and the proof.

        ``path`` and ``query`` are percent-encoded already; ``payload`` is the body's SHA-256.
        """
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
        signed = {**headers, "x-amz-date": stamp, "x-amz-content-sha256": payload}
        if keys.token:
            signed["x-amz-security-token"] = keys.token
        names = sorted(name for name in signed if name not in _NEVER_SIGNED)
        listed = ";".join(names)
        # Version 4 signs values with their runs of spaces folded into one.
        lines = "\n".join([f"{name}:{' '.join(signed[name].split())}" for name in names])
        search = "&".join([f"{name}={value}" for name, value in sorted(query)])
        canonical = f"{method}\n{path}\n{search}\n{lines}\n\n{listed}\n{payload}"
        day = stamp[:8]
        scope = f"{day}/{self._region}/{self._service}/aws4_request"
        digest = hashlib.sha256(canonical.encode("utf-8", "surrogateescape")).hexdigest()
        text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{digest}"
        proof = hmac.digest(self._key(keys.secret_key, day), text.encode(), "sha256").hex()
        signed["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={keys.access_key}/{scope}, "
            f"SignedHeaders={listed}, Signature={proof}"
        )
        return signed

    def presign(
        self,
        keys: Keys,
        method: str,
        path: str,
        headers: Mapping[str, str],
        seconds: int,
        *,
        query: Sequence[tuple[str, str]] = (),
        now: float | None = None,
    ) -> list[tuple[str, str]]:
        """The query of a request that others send: ``query``, encoded, and the proof in it."""
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
        scope = f"{stamp[:8]}/{self._region}/{self._service}/aws4_request"
        listed = ";".join(sorted(headers))
        proof = {
            "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
            "X-Amz-Credential": f"{keys.access_key}/{scope}",
            "X-Amz-Date": stamp,
            "X-Amz-Expires": str(seconds),
            "X-Amz-SignedHeaders": listed,
        }
        if keys.token:
            proof["X-Amz-Security-Token"] = keys.token
        pairs = [*query, *((name, quote(value, safe="-_.~")) for name, value in proof.items())]
        search = "&".join(f"{name}={value}" for name, value in sorted(pairs))
        lines = "\n".join(f"{name}:{headers[name]}" for name in sorted(headers))
        canonical = f"{method}\n{path}\n{search}\n{lines}\n\n{listed}\n{UNSIGNED}"
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{digest}"
        key = self._key(keys.secret_key, stamp[:8])
        return [*pairs, ("X-Amz-Signature", hmac.digest(key, text.encode(), "sha256").hex())]

    def _key(self, secret: str, day: str) -> bytes:
        known_secret, known_day, key = self._derived
        if known_secret == secret and known_day == day:
            return key
        key = f"AWS4{secret}".encode()
        for step in (day, self._region, self._service, "aws4_request"):
            key = hmac.digest(key, step.encode(), "sha256")
        # One assignment, so that threads never see half of it.
        self._derived = (secret, day, key)
        return key
