"""Checks that requests make on themselves; each raises ``InvalidInput`` and names the field."""

from __future__ import annotations

import re
from collections.abc import Sequence

from calque.errors import InvalidInput
from calque.store.metabase.model.records import (
    NONCE_SIZE,
    PROJECT_ID_SIZE,
    STREAM_ID_SIZE,
    WRAPPED_KEY_SIZE,
    ObjectLocation,
    SegmentKey,
    WrappedMetadata,
)

MAX_KEY_SIZE = 24 * 1024
"""Encrypted: a plain key of 1,024 bytes has 1,025 components at most, of 22 bytes and a ``/``."""
_BUCKET_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
MAX_PLAIN_METADATA = 8192
"""S3 has 2 KiB for users; headers, tags, etag and checksums need room beside them."""
MAX_METADATA = MAX_PLAIN_METADATA + 16
"""Encrypted: the tag of AES-GCM comes on top."""

MAX_EXPIRY = 253_370_764_800_000_000
"""Microseconds: the year 9999. Whoever reckons from a time before it stays within the calendar."""

MAX_KEYS_PER_CALL = 10_000
MAX_OPERATION_KEYS = 1_000_000
"""Keys of one operation: an object of 64 TB in segments of 64 MiB."""
MAX_LIVE_COPIES = 100


def exactly(value: bytes, size: int, what: str) -> None:
    """``value`` has exactly ``size`` bytes."""
    if not value:
        raise InvalidInput(f"{what} is missing")
    if len(value) != size:
        raise InvalidInput(f"{what} has {len(value)} bytes, it must have {size}")


def expiry(at_us: int | None) -> None:
    """An expiry lies between 1970 and the year 9999."""
    if at_us is not None and not 0 <= at_us < MAX_EXPIRY:
        raise InvalidInput(
            "the expiry does not lie between 1970 and the year 9999",
            hint="Leave it out for an object that stays.",
        )


def stream_id(value: bytes, what: str = "stream id") -> None:
    """``value`` can be a stream id."""
    exactly(value, STREAM_ID_SIZE, what)


def bucket_name(name: str, what: str = "bucket") -> None:
    """``name`` can be a bucket: 3 to 63 of a–z, 0–9, ``-`` and ``.``, as in S3."""
    if not name:
        raise InvalidInput(f"{what} is missing")
    if not _BUCKET_NAME.fullmatch(name):
        raise InvalidInput(
            f"{what} name {name[:80]!r} is not allowed",
            hint="Use 3 to 63 of a–z, 0–9, '-' and '.', with a letter or digit at both ends.",
        )


def location(value: ObjectLocation, which: str = "") -> None:
    """``value`` names a project, a bucket and a key; ``which`` is "new" for a destination."""
    lead = f"{which} " if which else ""
    exactly(value.project_id, PROJECT_ID_SIZE, "project id")
    bucket_name(value.bucket, f"{lead}bucket")
    if not value.key:
        raise InvalidInput(f"{lead}encrypted object key is missing")
    if len(value.key) > MAX_KEY_SIZE:
        raise InvalidInput(
            f"{lead}encrypted object key has {len(value.key)} bytes, the limit is {MAX_KEY_SIZE}"
        )


def metadata(value: WrappedMetadata, which: str = "") -> None:
    """Metadata, key and nonce come together and have their sizes; or there is none of them."""
    lead = f"{which} " if which else ""
    if value.data and not (value.key and value.nonce):
        raise InvalidInput(f"{lead}encrypted metadata came without its key and nonce")
    wrapped_metadata_key(value.key, value.nonce, which)
    if value.data and len(value.data) > MAX_METADATA:
        raise InvalidInput(
            f"{lead}encrypted metadata has {len(value.data)} bytes, the limit is {MAX_METADATA}"
        )


def wrapped_metadata_key(key: bytes | None, nonce: bytes | None, which: str = "") -> None:
    """A wrapped metadata key and its nonce come together and have their sizes."""
    lead = f"{which} " if which else ""
    if key and not nonce:
        raise InvalidInput(f"{lead}metadata key came without its nonce")
    if nonce and not key:
        raise InvalidInput(f"{lead}metadata key nonce came without its key")
    if key and nonce:
        exactly(key, WRAPPED_KEY_SIZE, f"{lead}metadata key")
        exactly(nonce, NONCE_SIZE, f"{lead}metadata key nonce")


def wrapped_key(key: bytes, nonce: bytes) -> None:
    """A wrapped content key and its nonce have their sizes."""
    exactly(key, WRAPPED_KEY_SIZE, "encrypted key")
    exactly(nonce, NONCE_SIZE, "encrypted key nonce")


def key_count(count: int) -> None:
    """So many segment keys may come in one call."""
    if count > MAX_KEYS_PER_CALL:
        raise InvalidInput(
            f"{count} segment keys in one call, the limit is {MAX_KEYS_PER_CALL}",
            hint="Send them in several partial calls.",
        )


def operation_keys(count: int) -> None:
    """So many segment keys may one copy or move have."""
    if count > MAX_OPERATION_KEYS:
        raise InvalidInput(
            f"{count} segment keys, a copy or move takes {MAX_OPERATION_KEYS} at most",
            hint="Upload the object anew, in larger segments.",
        )


def segment_keys(keys: Sequence[SegmentKey]) -> None:
    """Positions rise (so none comes twice) and every key and nonce has its size."""
    key_count(len(keys))
    before = -1
    for position, nonce, key in keys:
        if len(key) != WRAPPED_KEY_SIZE or len(nonce) != NONCE_SIZE:
            wrapped_key(key, nonce)
        if position <= before:
            what = "comes twice" if position == before else "is out of order"
            raise InvalidInput(f"segment position {position >> 32}/{position & 0xFFFFFFFF} {what}")
        before = position
