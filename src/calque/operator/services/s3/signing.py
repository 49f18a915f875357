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
