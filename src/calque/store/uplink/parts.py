"""The parts of an upload: each upload of a part is an attempt of its own, and the last one counts.

S3 replaces a part as a whole, or not at all. So every attempt writes its segments beside those of
the attempts before it, under a part number of the satellite's that holds both: the number that
users see and a random one. An attempt is whole when its segments, from the first to the one marked
as last, carry the same token; what is not whole is nobody's part. The commit names the attempts
that become the object, and what is left of the others goes in the same transaction.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from calque.errors import InvalidInput
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.metainfo.timestamps import as_datetime

LAST_PART = 10_000

_ATTEMPT_BITS = 17
"""Beside them 14 bits for the number: what a position has room for."""

_END = ":"

PartEtag = str | Callable[[], str]
"""An etag, or what gives it once the last byte of the part was read."""


@dataclass(frozen=True, slots=True)
class PartInfo:
    """A part that the satellite holds as a whole."""

    number: int
    size: int
    etag: str
    modified: datetime
    attempt: int
    """Which upload of the part this is, as the satellite numbers it."""
    copied: bool = False
    """Whether it is nothing but ranges of an object."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One upload of a part, while it is under way."""

    part: int
    etag: PartEtag
    token: str = field(default_factory=lambda: os.urandom(8).hex())

    @classmethod
    def begin(cls, number: int, etag: PartEtag) -> Attempt:
        """A new attempt; InvalidInput for a number that no part has."""
        if not 1 <= number <= LAST_PART:
            raise InvalidInput(f"a part is numbered from 1 to {LAST_PART}, not {number}")
        return cls(number << _ATTEMPT_BITS | secrets.randbits(_ATTEMPT_BITS), etag)

    def note(self, is_last: bool) -> str:
        """What is kept, encrypted, with a segment of this attempt."""
        if not is_last:
            return self.token
        etag = self.etag if isinstance(self.etag, str) else self.etag()
        return self.token + _END + etag


@dataclass(frozen=True, slots=True)
class _Piece:
    index: int
    size: int
    token: str
    is_last: bool
    etag: str
    modified: datetime
    copied: bool


def gather_parts(
    segments: Iterable[pb.Segment], open_note: Callable[[pb.Segment], str]
) -> list[PartInfo]:
    """The parts that these segments (by position) make, by number: the last whole attempt each."""
    parts: dict[int, PartInfo] = {}
    for attempt, pieces in _attempts(segments, open_note):
        if not _is_whole(attempt, pieces):
            continue
        number = number_of(attempt)
        made = PartInfo(
            number,
            sum(piece.size for piece in pieces),
            pieces[-1].etag,
            max(piece.modified for piece in pieces),
            attempt,
            all(piece.copied for piece in pieces),
        )
        before = parts.get(number)
        if before is None or before.modified <= made.modified:
            parts[number] = made
    return [parts[number] for number in sorted(parts)]


def number_of(attempt: int) -> int:
    """The number that users see; parts from before there were attempts have it themselves."""
    return attempt >> _ATTEMPT_BITS or attempt


def _attempts(
    segments: Iterable[pb.Segment], open_note: Callable[[pb.Segment], str]
) -> Iterator[tuple[int, list[_Piece]]]:
    attempt, pieces = None, list[_Piece]()
    for segment in segments:
        if segment.position.part_number != attempt:
            if attempt is not None:
                yield attempt, pieces
            attempt, pieces = segment.position.part_number, []
        pieces.append(_read_piece(segment, open_note(segment)))
    if attempt is not None:
        yield attempt, pieces


def _read_piece(segment: pb.Segment, note: str) -> _Piece:
    token, end, etag = note.partition(_END)
    return _Piece(
        index=segment.position.index,
        size=segment.plain_size,
        token=token,
        is_last=bool(end),
        etag=etag,
        modified=as_datetime(segment.created_at),
        copied=segment.HasField("origin"),
    )


def _is_whole(attempt: int, pieces: list[_Piece]) -> bool:
    if number_of(attempt) == attempt:
        return True
    in_order = [piece.index for piece in pieces] == list(range(len(pieces)))
    ends = [piece.index for piece in pieces if piece.is_last]
    return in_order and ends == [len(pieces) - 1] and len({piece.token for piece in pieces}) == 1
