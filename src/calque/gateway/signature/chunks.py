"""Bodies in chunks of their own (``aws-chunked``), inside HTTP's: sizes, signatures, trailers.

::

    <size in hex>[;chunk-signature=<signature>]\\r\\n<bytes>\\r\\n
    …
    0[;chunk-signature=<signature>]\\r\\n
    [<name>:<value>\\r\\n … [x-amz-trailer-signature:<signature>\\r\\n]]
    \\r\\n

Each signature is chained to the one before it, the first to that of the head. Bytes are passed on
before the signature of their chunk is known to be right: nothing may be committed before the end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from calque.gateway.errors import S3Error
from calque.gateway.request import BLOCK, Reader
from calque.gateway.signature.canonical import EMPTY_SHA256, SigningKey, is_same, mismatch

LONGEST_LINE = 4096
MOST_TRAILERS = 16
_LARGEST_CHUNK = 1 << 40
_WORTH = 64 * 1024
"""Bytes from which a block is passed on by itself."""


class ChunkedBody:
    """Decodes a chunked body; ``trailers`` are there after its last block."""

    def __init__(self, source: Reader, signing: SigningKey | None, *, has_trailer: bool) -> None:
        self._lines = _Lines(source)
        self._signing = signing
        self._previous = signing.seed if signing else ""
        self._has_trailer = has_trailer
        self.trailers: dict[str, str] = {}

    def __iter__(self) -> Iterator[bytes]:
        """Blocks; of chunks that are smaller than one, several are one block: each costs work
        further on, and a client may cut its body into single bytes."""
        small: list[bytes] = []
        size = 0
        for block in self._read_chunks():
            if not small and len(block) >= _WORTH:
                yield block
                continue
            small.append(block)
            size += len(block)
            if size >= _WORTH:
                yield b"".join(small)
                small, size = [], 0
        if small:
            yield b"".join(small)

    def _read_chunks(self) -> Iterator[bytes]:
        while True:
            size, signature = self._read_head()
            running = hashlib.sha256() if self._signing else None
            left = size
            while left:
                block = self._lines.read(min(left, BLOCK))
                if not block:
                    raise incomplete()
                left -= len(block)
                if running:
                    running.update(block)
                yield block
            self._verify(signature, running.hexdigest() if running else "")
            if size == 0:
                break
            if self._lines.read_exactly(2) != b"\r\n":
                raise malformed_chunks()
        self._read_trailers()
        if self._lines.read(1):
            raise malformed_chunks()

    def _read_head(self) -> tuple[int, str]:
        line = self._lines.read_line()
        digits, _, rest = line.partition(";")
        name, _, signature = rest.partition("=")
        if not digits or len(digits) > 16 or any(c not in "0123456789abcdefABCDEF" for c in digits):
            raise malformed_chunks()
        if self._signing and name.strip() != "chunk-signature":
            raise S3Error("AccessDenied", "A chunk of the body has no signature.")
        size = int(digits, 16)
        if size > _LARGEST_CHUNK:
            raise malformed_chunks()
        return size, signature.strip()

    def _verify(self, signature: str, digest: str) -> None:
        if self._signing is None:
            return
        made = self._signing.sign("AWS4-HMAC-SHA256-PAYLOAD", self._previous, EMPTY_SHA256, digest)
        if not is_same(made, signature):
            raise mismatch()
        self._previous = made

    def _read_trailers(self) -> None:
        """Lines up to an empty one; some clients end with the last trailer, without that line."""
        signed = ""
        for _ in range(MOST_TRAILERS + 1):
            line = self._lines.read_line(may_end=True)
            if not line:
                break
            name, colon, value = line.partition(":")
            name, value = name.strip().lower(), value.strip()
            if not colon or not name or name in self.trailers:
                raise malformed_chunks()
            if name != "x-amz-trailer-signature":
                signed += f"{name}:{value}\n"
            self.trailers[name] = value
        else:
            raise malformed_chunks()
        if not self._has_trailer and self.trailers:
            raise malformed_chunks()
        signature = self.trailers.pop("x-amz-trailer-signature", None)
        if self._signing and self._has_trailer:
            digest = hashlib.sha256(signed.encode("latin-1")).hexdigest()
            made = self._signing.sign("AWS4-HMAC-SHA256-TRAILER", self._previous, digest)
            if signature is None or not is_same(made, signature):
                raise mismatch()


class _Lines:
    """Reads lines and blocks from one source."""

    def __init__(self, source: Reader) -> None:
        self._source = source
        self._held = b""
        self._at = 0
        """What of the held bytes was read: to cut them off each time would copy all the rest."""

    def read(self, most: int) -> bytes:
        if self._at == len(self._held):
            return self._source.read(most)
        block = self._held[self._at : self._at + most]
        self._at += len(block)
        return block

    def read_exactly(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            block = self.read(size - len(found))
            if not block:
                raise incomplete()
            found += block
        return found

    def read_line(self, *, may_end: bool = False) -> str:
        while (end := self._held.find(b"\r\n", self._at)) < 0:
            left = self._held[self._at :]
            if len(left) > LONGEST_LINE:
                raise malformed_chunks()
            block = self._source.read(BLOCK)
            if not block:
                if may_end and not left:
                    return ""
                raise incomplete()
            self._held, self._at = left + block, 0
        line, self._at = self._held[self._at : end], end + 2
        if len(line) > LONGEST_LINE:
            raise malformed_chunks()
        return line.decode("latin-1")


def incomplete() -> S3Error:
    return S3Error(
        "IncompleteBody",
        "You did not provide the number of bytes specified by the Content-Length HTTP header.",
    )


def malformed_chunks() -> S3Error:
    return S3Error("InvalidRequest", "The chunks of the body are malformed.")
