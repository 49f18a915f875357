"""A body on its way into the store: decoded, counted, hashed, and held against every promise."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Protocol

from calque.gateway.body import checksums
from calque.gateway.body.hashing import Hashing
from calque.gateway.errors import S3Error
from calque.gateway.request import BLOCK, Headers, Reader, Request
from calque.gateway.signature.canonical import UNSIGNED, SigningKey
from calque.gateway.signature.chunks import ChunkedBody, incomplete

SIGNED_CHUNKS = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
SIGNED_TRAILER = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
UNSIGNED_TRAILER = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
_WITH_TRAILER = (SIGNED_TRAILER, UNSIGNED_TRAILER)
_STREAMED = (SIGNED_CHUNKS, *_WITH_TRAILER)
_SHA256 = re.compile("[0-9a-fA-F]{64}")
LARGEST = 5 * 1024**4
"""Bytes of an object, as S3 has it."""


class Proof(Protocol):
    """What a signature says of the body."""

    @property
    def payload(self) -> str: ...

    @property
    def signing(self) -> SigningKey | None: ...


class Body:
    """Iterate it once: every check is made after the last block, before the end is reported.

    ``also`` names checksums that are wanted although nobody promised them. ``is_object`` is False
    where the headers tell of an object and not of the body: those of Complete.
    """

    def __init__(
        self,
        request: Request,
        proof: Proof,
        *,
        also: Iterable[str] = (),
        is_object: bool = True,
    ) -> None:
        headers = request.headers
        self._payload = proof.payload
        self.size = declared_size(headers, proof.payload)
        self._source = _open_source(request, proof, self.size)
        self._promised = checksums.find_given(headers) if is_object else {}
        self._in_trailer = _announced(headers, self._promised)
        if self._in_trailer and proof.payload not in _WITH_TRAILER:
            raise S3Error("InvalidRequest", "A trailer is announced to a body that can have none.")
        self._md5 = _content_md5(headers)
        names = {*also, *self._promised, *self._in_trailer}
        self.names = sorted(names)
        """The checksums that are made."""
        hashes = ["md5", *(name.lower() for name in self.names)]
        if _SHA256.fullmatch(proof.payload):
            hashes.append("sha256")
        self._hashing = Hashing(dict.fromkeys(hashes), self.size)

    def __iter__(self) -> Iterator[bytes]:
        come = 0
        for block in self._source:
            come += len(block)
            if come > self.size:
                raise S3Error("IncompleteBody", "The body is longer than was announced.")
            self._hashing.update(block)
            yield block
        if come != self.size:
            raise incomplete()
        self._verify()

    def read_all(self, most: int) -> bytes:
        """The whole body of a small request; MaxMessageLengthExceeded for a large one."""
        if self.size > most:
            raise S3Error("MaxMessageLengthExceeded", "Your request was too big.")
        return b"".join(self)

    @property
    def md5(self) -> str:
        """The MD5 of all bytes, in hexadecimal digits; known at the end."""
        return self._hashing.digest("md5").hex()

    @property
    def checksums(self) -> dict[str, str]:
        """The checksums that were promised or asked for; known at the end."""
        return {name: checksums.encode(self._hashing.digest(name.lower())) for name in self.names}

    def _verify(self) -> None:
        if self._md5 and self._hashing.digest("md5") != self._md5:
            raise _bad_digest("Content-MD5")
        is_hash = _SHA256.fullmatch(self._payload)
        if is_hash and self._hashing.digest("sha256").hex() != self._payload.lower():
            raise S3Error(
                "XAmzContentSHA256Mismatch",
                "The provided 'x-amz-content-sha256' header does not match what was computed.",
            )
        made = self.checksums
        for name, value in (self._promised | self._trailing()).items():
            if made[name] != value:
                raise _bad_digest(name)

    def _trailing(self) -> dict[str, str]:
        """The checksums that came behind the body: those that were announced, and no others."""
        if not isinstance(self._source, ChunkedBody):
            return {}
        found = checksums.find_given(self._source.trailers)
        if [*found] != self._in_trailer or len(found) != len(self._source.trailers):
            raise S3Error(
                "MalformedTrailerError",
                "The trailers that came are not those that x-amz-trailer announced.",
            )
        return found


class _Plain:
    """A body without chunks of its own."""

    def __init__(self, source: Reader, size: int) -> None:
        self._source = source
        self._left = size

    def __iter__(self) -> Iterator[bytes]:
        while self._left > 0:
            block = self._source.read(min(BLOCK, self._left))
            if not block:
                return
            self._left -= len(block)
            yield block


def declared_size(headers: Headers, payload: str) -> int:
    """How many bytes of content will come; 411 when nobody said."""
    name = "x-amz-decoded-content-length" if payload in _STREAMED else "content-length"
    text = headers.get(name)
    if text is None:
        raise S3Error("MissingContentLength", "You must provide the Content-Length HTTP header.")
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise S3Error("InvalidArgument", f"{name} is not a number of bytes.")
    if int(text) > LARGEST:
        raise S3Error(
            "EntityTooLarge", "Your proposed upload exceeds the maximum allowed object size."
        )
    return int(text)


def _open_source(request: Request, proof: Proof, size: int) -> _Plain | ChunkedBody:
    payload = proof.payload
    if payload in _STREAMED:
        signing = proof.signing if payload != UNSIGNED_TRAILER else None
        if payload != UNSIGNED_TRAILER and signing is None:
            raise S3Error("InvalidRequest", "Signed chunks need a signed head.")
        return ChunkedBody(request.body, signing, has_trailer=payload != SIGNED_CHUNKS)
    if payload != UNSIGNED and not _SHA256.fullmatch(payload):
        raise S3Error(
            "InvalidArgument",
            "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, STREAMING-… or a valid sha256 value.",
        )
    return _Plain(request.body, size)


def _announced(headers: Headers, promised: dict[str, str]) -> list[str]:
    """The checksums that will follow in a trailer."""
    names = [name.strip().lower() for name in headers.get("x-amz-trailer", "").split(",")]
    found = []
    for name in filter(None, names):
        if not name.startswith(checksums.PREFIX):
            raise S3Error(
                "InvalidRequest", "The value specified in the x-amz-trailer header is not supported"
            )
        found.append(checksums.algorithm_of(name[len(checksums.PREFIX) :]))
    if len(found) + len(promised) > 1:
        raise S3Error(
            "InvalidRequest",
            "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.",
        )
    return found


def _content_md5(headers: Headers) -> bytes:
    given = headers.get("content-md5")
    if given is None:
        return b""
    digest = checksums.decode(given)
    if len(digest) != 16:
        raise S3Error("InvalidDigest", "The Content-MD5 you specified is not valid.")
    return digest


def _bad_digest(name: str) -> S3Error:
    return S3Error("BadDigest", f"The {name} you specified did not match the calculated checksum.")
