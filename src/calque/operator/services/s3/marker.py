"""How an upload of ours is known from any other.

A listing of multipart uploads shows a key, an id and a time: nothing a client could write into it,
and the metadata of an unfinished upload cannot be read back. Parts, however, can be listed with
their numbers, sizes and ETags. So every upload of ours begins with part 10,000, a few known bytes.
The commit does not name it, and S3 drops parts that a commit does not name. Data parts use the
numbers up to 9,999.
"""

from __future__ import annotations

import base64
import hashlib
import zlib

from calque.operator.drivers.verbs import Part
from calque.values import GIB, MIB, PartLimits

NUMBER = 10_000
BYTES = b"calque: this multipart upload may be removed by `calque sweep`\n"
ETAG = hashlib.md5(BYTES, usedforsecurity=False).hexdigest()

LIMITS = PartLimits(smallest=5 * MIB, largest=5 * GIB, most=NUMBER - 1)


def crc32(data: bytes | memoryview) -> str:
    """The CRC-32 of bytes, as S3 writes it."""
    return base64.b64encode(zlib.crc32(data).to_bytes(4, "big")).decode()


def _reflected(data: bytes, polynomial: int, width: int) -> str:
    """A reflected CRC, bit by bit: good enough for the few bytes of the marker."""
    ones = (1 << width) - 1
    register = ones
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = (register >> 1) ^ (polynomial if register & 1 else 0)
    return base64.b64encode((register ^ ones).to_bytes(width // 8, "big")).decode()


CHECKSUMS = {
    "crc32": crc32(BYTES),
    "crc32c": _reflected(BYTES, 0x82F63B78, 32),
    "crc64nvme": _reflected(BYTES, 0x9A6C9329AC4BC9B5, 64),
}
"""The marker's own checksums: an upload that was begun with an algorithm wants one on each part.
They also tell the marker where encryption by KMS makes ETags that are no MD5."""


def is_marker(part: Part) -> bool:
    """Whether a part is the marker: by its number, its size, and its ETag or checksum."""
    if part.number != NUMBER or part.size != len(BYTES):
        return False
    return part.etag == ETAG or part.checksum in CHECKSUMS.values()
