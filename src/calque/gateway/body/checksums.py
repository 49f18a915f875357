"""The five checksums of S3: of bytes, of the parts of an upload, and combined without reading."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from awscrt import checksums as crt

from calque.gateway.errors import S3Error

COMPOSITE, FULL_OBJECT = "COMPOSITE", "FULL_OBJECT"

WIDTHS: Mapping[str, int] = MappingProxyType(
    {"CRC32": 4, "CRC32C": 4, "CRC64NVME": 8, "SHA1": 20, "SHA256": 32}
)
_COMBINE: Mapping[str, Callable[[int, int, int], int]] = MappingProxyType(
    {
        "CRC32": crt.combine_crc32,
        "CRC32C": crt.combine_crc32c,
        "CRC64NVME": crt.combine_crc64nvme,
    }
)
PREFIX = "x-amz-checksum-"


@dataclass(frozen=True, slots=True)
class Checksum:
    """A checksum of a whole object, or of the checksums of its parts."""

    algorithm: str
    value: str
    """Base64; of a composite one with ``-`` and the number of parts."""
    kind: str = FULL_OBJECT

    @property
    def header(self) -> str:
        return PREFIX + self.algorithm.lower()

    def __str__(self) -> str:
        return f"{self.algorithm}:{self.kind}:{self.value}"

    @classmethod
    def parse(cls, text: str) -> Checksum | None:
        """What ``str`` gave; None for anything else."""
        algorithm, _, rest = text.partition(":")
        kind, _, value = rest.partition(":")
        return cls(algorithm, value, kind) if algorithm in WIDTHS and value else None


def algorithm_of(text: str) -> str:
    """An algorithm by its name in any case; InvalidRequest for others."""
    name = text.upper()
    if name not in WIDTHS:
        raise S3Error(
            "InvalidRequest",
            f"Checksum algorithm provided is unsupported. Please try again with any of the valid "
            f"types: {', '.join(WIDTHS)}",
        )
    return name


def kind_for(algorithm: str, asked: str | None) -> str:
    """How the checksum of an upload in parts is made; InvalidRequest where that cannot be."""
    usual = FULL_OBJECT if algorithm == "CRC64NVME" else COMPOSITE
    kind = (asked or usual).upper()
    wrong = algorithm not in _COMBINE if kind == FULL_OBJECT else algorithm == "CRC64NVME"
    if kind not in (COMPOSITE, FULL_OBJECT) or wrong:
        raise S3Error(
            "InvalidRequest",
            f"The {kind} checksum type cannot be used with the {algorithm} checksum algorithm.",
        )
    return kind


def find_given(headers: Mapping[str, str]) -> dict[str, str]:
    """Checksums that headers or trailers carry; more than one is InvalidRequest."""
    found = {
        name: headers[PREFIX + name.lower()] for name in WIDTHS if PREFIX + name.lower() in headers
    }
    if len(found) > 1:
        raise S3Error(
            "InvalidRequest",
            "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.",
        )
    for name, value in found.items():
        require_value(name, value)
    return found


def require_value(algorithm: str, value: str) -> None:
    """InvalidDigest unless the value can be one of this algorithm."""
    if len(decode(value)) != WIDTHS[algorithm]:
        raise S3Error("InvalidDigest", f"Value for {PREFIX}{algorithm.lower()} header is invalid.")


def decode(value: str) -> bytes:
    """The bytes of a checksum in base64; empty when it is none."""
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return b""


def encode(digest: bytes) -> str:
    return base64.b64encode(digest).decode()


def combine(algorithm: str, kind: str, parts: Sequence[tuple[str, int]]) -> Checksum:
    """The checksum of an object out of those of its parts and their sizes; nothing is read."""
    if kind == FULL_OBJECT:
        return Checksum(algorithm, _combine_crcs(algorithm, parts), kind)
    whole = _hash_of(algorithm, b"".join(decode(value) for value, _ in parts))
    return Checksum(algorithm, f"{encode(whole)}-{len(parts)}", kind)


def _combine_crcs(algorithm: str, parts: Iterable[tuple[str, int]]) -> str:
    crc = 0
    for value, size in parts:
        crc = _COMBINE[algorithm](crc, int.from_bytes(decode(value), "big"), size)
    return encode(crc.to_bytes(WIDTHS[algorithm], "big"))


def _hash_of(algorithm: str, data: bytes) -> bytes:
    if algorithm in ("SHA1", "SHA256"):
        return hashlib.new(algorithm, data, usedforsecurity=False).digest()
    crc: int = getattr(crt, algorithm.lower())(data)
    return crc.to_bytes(WIDTHS[algorithm], "big")
