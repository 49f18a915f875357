"""The values that the tables hold, unpacked: positions, encryption, redundancy, records."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NamedTuple

from calque.errors import InvalidInput

STREAM_ID_SIZE = 16
PROJECT_ID_SIZE = 16
ROOT_PIECE_ID_SIZE = 32
NODE_ID_SIZE = 32
NONCE_SIZE = 12
WRAPPED_KEY_SIZE = 48

MAX_PART = 2**31 - 1
MAX_INDEX = 2**31 - 1

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(at_us: int) -> datetime:
    """A time of the metabase as one of the calendar: exactly, which a float is not."""
    return _EPOCH + timedelta(microseconds=at_us)


def now_us() -> int:
    """The time in microseconds since 1970."""
    return time.time_ns() // 1000


def new_stream_id(at_us: int) -> bytes:
    """A random id that begins with the time, so that new rows lie beside each other."""
    return (at_us // 1000).to_bytes(6, "big") + os.urandom(10)


class Position(NamedTuple):
    """Where a segment stands: its part, then its number within the part."""

    part: int
    number: int

    def encode(self) -> int:
        """The number that the database orders by."""
        return self.part << 32 | self.number

    @classmethod
    def decode(cls, number: int) -> Position:
        """The position behind a number of the database."""
        return cls(number >> 32, number & 0xFFFFFFFF)

    def check(self) -> Position:
        """This position, or ``InvalidInput`` when a field is out of range."""
        if not (0 <= self.part <= MAX_PART and 0 <= self.number <= MAX_INDEX):
            raise InvalidInput(f"segment position {self.part}/{self.number} is out of range")
        return self


class Encryption(NamedTuple):
    """The cipher of an object and the size of its encrypted blocks."""

    cipher: int
    block_size: int

    def encode(self) -> int:
        """One number for the database."""
        return self.cipher << 32 | self.block_size

    @classmethod
    def decode(cls, number: int) -> Encryption:
        """The parameters behind a number of the database."""
        return cls(number >> 32, number & 0xFFFFFFFF)


class Redundancy(NamedTuple):
    """How a segment is spread: any ``required`` of ``total`` pieces give it back."""

    share_size: int
    required: int
    repair: int
    success: int
    total: int

    def encode(self) -> int:
        """One number for the database."""
        low = self.required << 24 | self.repair << 16 | self.success << 8 | self.total
        return self.share_size << 32 | low

    @classmethod
    def decode(cls, number: int) -> Redundancy:
        """The scheme behind a number of the database."""
        return cls(
            number >> 32,
            number >> 24 & 0xFF,
            number >> 16 & 0xFF,
            number >> 8 & 0xFF,
            number & 0xFF,
        )

    def check(self) -> Redundancy:
        """This scheme, or ``InvalidInput`` when its numbers contradict each other."""
        ordered = 1 <= self.required <= self.repair <= self.success <= self.total <= 255
        if not ordered or not 0 < self.share_size < 2**31:
            raise InvalidInput(
                f"redundancy {tuple(self)} must keep 1 ≤ required ≤ repair ≤ success ≤ total ≤ 255"
            )
        return self


@lru_cache(maxsize=1024)
def readable_redundancy(number: int) -> Redundancy | None:
    """The scheme behind a number of the database; None where that is damaged."""
    try:
        return Redundancy.decode(number).check()
    except InvalidInput:
        return None


NO_REDUNDANCY = 0


class ObjectLocation(NamedTuple):
    """A project, a bucket in it and the encrypted key of an object."""

    project_id: bytes
    bucket: str
    key: bytes


class WrappedMetadata(NamedTuple):
    """Metadata as the client encrypted it, with its own key, wrapped."""

    nonce: bytes | None
    data: bytes | None
    key: bytes | None


NO_METADATA = WrappedMetadata(None, None, None)


class ObjectRecord(NamedTuple):
    """A row of ``objects``."""

    project_id: bytes
    bucket_name: str
    object_key: bytes
    version: int
    stream_id: bytes
    created_at: int
    expires_at: int | None
    status: int
    segment_count: int
    encrypted_metadata_nonce: bytes | None
    encrypted_metadata: bytes | None
    encrypted_metadata_encrypted_key: bytes | None
    total_plain_size: int
    total_encrypted_size: int
    fixed_segment_size: int
    encryption: int
    zombie_deletion_deadline: int | None

    @property
    def location(self) -> ObjectLocation:
        """Where the object lies."""
        return ObjectLocation(self.project_id, self.bucket_name, self.object_key)

    def is_expired(self, at_us: int) -> bool:
        """Whether the object is past its end at ``at_us``."""
        return self.expires_at is not None and self.expires_at <= at_us


class Origin(NamedTuple):
    """The segment that a slice is cut from: where it begins there, and how large that one is."""

    position: int
    skip: int
    plain_size: int
    encrypted_size: int


class SegmentRecord(NamedTuple):
    """A row of ``segments``; borrowed pieces are filled in from where they are."""

    stream_id: bytes
    position: int
    created_at: int
    repaired_at: int | None
    expires_at: int | None
    root_piece_id: bytes
    encrypted_key_nonce: bytes
    encrypted_key: bytes
    encrypted_size: int
    plain_size: int
    plain_offset: int
    encrypted_etag: bytes | None
    redundancy: int
    inline_data: bytes | None
    remote_alias_pieces: bytes | None
    placement: int
    origin: Origin | None = None
    """Of a slice, once it was looked up; no column."""

    @property
    def is_borrowed(self) -> bool:
        """Whether this is a copy or slice of a remote segment, whose pieces another row holds."""
        return (
            self.remote_alias_pieces is None
            and self.inline_data is None
            and self.encrypted_size > 0
        )


class SegmentKey(NamedTuple):
    """The wrapped content key of the segment at a position."""

    position: int
    nonce: bytes
    key: bytes


@dataclass(frozen=True)
class DeletedPieces:
    """The pieces of one physical segment whose last holder has gone: remove them."""

    root_piece_id: bytes
    pieces: tuple[tuple[int, bytes, str], ...]
    """Of each piece: its number, the node's id, the node's address."""


class FreedSegment(NamedTuple):
    """A physical segment that nobody holds any more, its pieces still packed."""

    root_piece_id: bytes
    alias_pieces: bytes
