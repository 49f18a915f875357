"""How an upload of ours is known from any other.

A listing of multipart uploads shows a key, an id and a time: nothing a client could write into it,
and the metadata of an unfinished upload cannot be read back. Parts, however, can be listed with
their numbers, sizes and ETags. So every upload of ours begins with part 10,000, a few known bytes.
The commit does not name it, and S3 drops parts that a commit does not name. Data parts use the
numbers up to 9,999.

Some servers (``rclone serve s3``) commit only when every part is named and none is missing between.
There the mark is the size of the parts: whole MiB and 12,289 bytes, which nobody chooses by chance.
An upload that was killed before its first part had landed is then not known as ours.
"""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Sequence

from calque.operator.drivers.verbs import Part
from calque.values import GIB, MIB, PartLimits

NUMBER = 10_000
BYTES = b"calque: this multipart upload may be removed by `calque sweep`\n"
ETAG = hashlib.md5(BYTES, usedforsecurity=False).hexdigest()

ODD = 12_289
"""What parts have beyond whole MiB where their size is the mark."""

LIMITS = PartLimits(smallest=5 * MIB, largest=5 * GIB, most=NUMBER - 1)


def crc32(data: bytes | memoryview) -> str:
    """The CRC-32 of bytes, as S3 writes it."""
    return base64.b64encode(zlib.crc32(data).to_bytes(4, "big")).decode()


def _reflected_crc(data: bytes, polynomial: int, width: int) -> str:
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
    "crc32c": _reflected_crc(BYTES, 0x82F63B78, 32),
    "crc64nvme": _reflected_crc(BYTES, 0x9A6C9329AC4BC9B5, 64),
}
"""The marker's own checksums: an upload that was begun with an algorithm wants one on each part.
They also tell the marker where encryption by KMS makes ETags that are no MD5."""


def is_marker(part: Part) -> bool:
    """Whether a part is the marker: by its number, its size, and its ETag or checksum."""
    if part.number != NUMBER or part.size != len(BYTES):
        return False
    return part.etag == ETAG or part.checksum in CHECKSUMS.values()


def odd_size(wanted: int) -> int:
    """The size of parts that are marked by it: ``wanted`` or somewhat more."""
    return -(-wanted // MIB) * MIB + ODD


def are_odd(parts: Sequence[Part]) -> bool:
    """Whether parts have the size that is a mark; the last one may have any."""
    sized = sorted(parts, key=lambda part: part.number)
    if not sized or sized[0].number != 1:
        return False
    return all(part.size % MIB == ODD for part in (sized[:-1] or sized))
