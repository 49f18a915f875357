"""Checksums by the libraries of others, to hold ours against."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Callable

import awscrt.checksums
import google_crc32c


def _written(number: int, width: int) -> str:
    return base64.b64encode(number.to_bytes(width, "big")).decode()


def _hashed(kind: str, data: bytes) -> str:
    return base64.b64encode(hashlib.new(kind, data).digest()).decode()


TRUE: dict[str, Callable[[bytes], str]] = {
    "crc32": lambda data: _written(zlib.crc32(data), 4),
    "crc32c": lambda data: _written(google_crc32c.value(data), 4),
    "crc64nvme": lambda data: _written(awscrt.checksums.crc64nvme(data), 8),
    "sha1": lambda data: _hashed("sha1", data),
    "sha256": lambda data: _hashed("sha256", data),
    "md5": lambda data: _hashed("md5", data),
}


def flip_a_bit(data: bytes) -> bytes:
    """The same bytes but for one bit in their middle."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
