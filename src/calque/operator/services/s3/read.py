"""How S3 serves the bytes of an object."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from calque.errors import CalqueError, ConditionNotMatch
from calque.operator.http import body
from calque.operator.http.body import NothingLeft, OpenReply
from calque.operator.options import ReadOptions
from calque.operator.services.s3.client import Client, Request, refusal_behind
from calque.operator.services.s3.replies import (
    bare_etag,
    checksums_of,
    metadata_of,
    quoted_etag,
    version_of,
)
from calque.operator.services.s3.stat import tags_to_carry
from calque.values import Checksum, Metadata

_PIECE = 256 * 1024
_MD5 = re.compile(r"[0-9a-fA-F]{32}")
_ASK = {"x-amz-checksum-mode": "ENABLED"}
_KEYED = "x-amz-server-side-encryption-customer-algorithm"
_ENCRYPTED = "x-amz-server-side-encryption"


def read(client: Client, path: str, key: str, options: ReadOptions) -> Iterator[bytes]:
    """The bytes of a range, held against what their reply says of them."""
    source = _Object(client, path, key, options)
    if options.range.length == 0:
        # There is no range of no bytes; S3 would answer such a request with the whole object.
        source.look()
        return iter(())
    return body.read(source, options)


def fetch(
    client: Client, path: str, key: str, options: ReadOptions, *, tags: bool
) -> tuple[Metadata, bytes]:
    """An object with its headers, out of one reply.

    Tags cost a second request, sent only where the reply counts some. Who may not read them is not
    told that there are any: so those of the first object are asked for in any case, and a refusal
    is an error.
    """
    source = _Object(client, path, key, options)
    data = b"".join(body.read(source, options))
    headers = source.replies[0] if source.replies else {}
    found = replace(metadata_of(path, headers), size=len(data), tags={})
    counted = headers.get("x-amz-tagging-count", "0") != "0"
    if not tags or (client.link.tags_seen and not counted):
        return found, data
    carried = tags_to_carry(client, path, key, found.version)
    client.link.tags_seen = True
    return replace(found, tags=carried), data


@dataclass(frozen=True, slots=True)
class _Object:
    """One object, or one version of it."""

    client: Client
    path: str
    key: str
    options: ReadOptions
    replies: list[Mapping[str, str]] = field(default_factory=list)
    """The headers of the replies that have come."""

    @property
    def location(self) -> str:
        return self.client.location(self.key)

    def look(self) -> None:
        """No bytes, of an object that must be there and be the one that is meant."""
        pin = self.options.if_match
        answer = self.client.send(
            "read", self.path, Request("HEAD", self.key, self._query, _pins(pin))
        )
        self._refuse_other_version(answer.headers)
        if pin is not None and not self.is_pinned_by(pin, answer.headers):
            raise ConditionNotMatch(f"{self.location} was replaced by another object")

    def open(self, span: str | None, pin: str | None) -> OpenReply | NothingLeft:
        # Checksums are of whole objects, so they are asked for only with one.
        headers = {**_pins(pin), **(_ASK if span is None else {"range": span})}
        request = Request("GET", self.key, self._query, headers, accepts=(200, 206))
        try:
            stream = self.client.open("read", self.path, request)
        except CalqueError as error:
            refusal = refusal_behind(error)
            if span is not None and refusal is not None and refusal.status == 416:
                return NothingLeft(refusal.size)
            raise
        self.replies.append(stream.headers)
        try:
            self._refuse_other_version(stream.headers)
        except ConditionNotMatch:
            stream.close()
            raise
        return OpenReply(stream.status, stream.headers, stream.pieces(_PIECE), stream.close)

    @property
    def _query(self) -> list[tuple[str, str]]:
        return [("versionId", self.options.version)] if self.options.version else []

    def _refuse_other_version(self, headers: Mapping[str, str]) -> None:
        wanted, found = self.options.version, version_of(headers)
        # ``null`` is the version of what was written before a bucket kept versions.
        if wanted is not None and wanted != (found or "null"):
            raise ConditionNotMatch(
                f"{self.location}: the server answered with version {found}, not {wanted}"
            )

    def is_pinned_by(self, pin: str, headers: Mapping[str, str]) -> bool:
        return pin == "*" or _strong(pin) == _strong(headers.get("etag"))

    def pin_of(self, headers: Mapping[str, str]) -> str | None:
        return bare_etag(headers.get("etag"))

    def checksums_of(self, headers: Mapping[str, str]) -> Iterable[Checksum]:
        yield from checksums_of(headers)
        etag = bare_etag(headers.get("etag")) or ""
        if self.client.link.config.md5_etags and _MD5.fullmatch(etag) and not _has_own_key(headers):
            yield Checksum("md5", base64.b64encode(bytes.fromhex(etag)).decode())


def _strong(etag: str | None) -> str | None:
    """An ETag as it is compared: some proxies mark those that pass them as weak."""
    return bare_etag(etag.removeprefix("W/")) if etag else None


def _has_own_key(headers: Mapping[str, str]) -> bool:
    """Whether encryption by KMS or by a customer's key made the ETag something else than an MD5."""
    return _KEYED in headers or headers.get(_ENCRYPTED, "").startswith("aws:kms")


def _pins(pin: str | None) -> dict[str, str]:
    return {} if pin is None else {"if-match": quoted_etag(pin)}
