"""Bytes into segments: small ones into the metadata, larger ones as pieces onto nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

from calque import faults
from calque.errors import (
    CalqueError,
    FailedPrecondition,
    InvalidInput,
    NotFound,
    PermissionDenied,
    ResourceExhausted,
)
from calque.store.chunks import ChunkReader
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.nodes.erasure import Coder
from calque.store.nodes.upload import Target, discard_pieces, upload_pieces
from calque.store.uplink.encryption.access import Located
from calque.store.uplink.encryption.blocks import (
    BlockCipher,
    EncryptionParameters,
    SegmentEncryption,
)
from calque.store.uplink.encryption.cipher import Sealed
from calque.store.uplink.encryption.keys import SecretKey
from calque.store.uplink.encryption.part_etag import seal_etag
from calque.store.uplink.encryption.segment_keys import Position, new_segment_key, wrap_segment_key
from calque.store.uplink.segments.segments_in_flight import SegmentsInFlight
from calque.store.uplink.session import Session, redundancy_of

REFUSED = (InvalidInput, NotFound, PermissionDenied, FailedPrecondition, ResourceExhausted)
"""What the satellite answers when it has not taken a segment."""

Note = Callable[[bool], str]
"""What is kept with a segment; it is told whether the segment is the last."""


@dataclass(frozen=True, slots=True)
class Upload:
    """An upload under way: what every segment of it needs."""

    id: bytes
    located: Located
    parameters: EncryptionParameters
    expires: datetime | None


@dataclass(frozen=True, slots=True)
class _Segment:
    position: Position
    key: SecretKey
    wrapped: Sealed
    note: Note

    def seal_note(self, upload: Upload, *, is_last: bool) -> bytes:
        return seal_etag(upload.parameters.suite, self.key, self.note(is_last))


def no_note(_is_last: bool) -> str:
    """Nothing is kept with the segments."""
    return ""


def write_segments(
    session: Session, upload: Upload, source: ChunkReader, *, part: int = 0, note: Note = no_note
) -> int:
    """Read a source to its end into the segments of one part; how many bytes it had.

    Memory is bounded: some MiB for each segment in flight on one node, its coded bytes at most
    on several. What ``note`` gives is kept, encrypted, with each segment; of the last one it is
    asked when everything was read. A part of no bytes has one empty segment, an object of no
    bytes (part 0) none.
    """
    flight = SegmentsInFlight(session.settings.segments_in_flight)
    written, index = 0, 0
    try:
        while source.fill(1) or (part > 0 and index == 0):
            segment = _new_segment(upload, Position(part, index), note)
            if source.fill(session.limits.inline_size + 1) <= session.limits.inline_size:
                plain = bytes(source.read(session.limits.inline_size + 1))
                _store_inline(session, upload, segment, plain, is_last=not source.fill(1))
                written += len(plain)
            else:
                written += _write_remote(session, upload, segment, source, flight)
            index += 1
        flight.finish()
    except BaseException:
        flight.stop()
        raise
    return written


def _new_segment(upload: Upload, position: Position, note: Note) -> _Segment:
    key, suite = new_segment_key(), upload.parameters.suite
    return _Segment(
        position=position,
        key=key,
        wrapped=wrap_segment_key(suite, upload.located, key, position),
        note=note,
    )


def write_inline(
    session: Session, upload: Upload, position: Position, plain: bytes, note: Note, *, is_last: bool
) -> None:
    """Store bytes inside the metadata, as one segment."""
    _store_inline(session, upload, _new_segment(upload, position, note), plain, is_last=is_last)


def _store_inline(
    session: Session, upload: Upload, segment: _Segment, plain: bytes, *, is_last: bool
) -> None:
    session.metainfo.make_inline_segment(
        pb.SegmentMakeInlineRequest(
            header=session.header,
            upload_id=upload.id,
            position=position_message(segment.position),
            encrypted_key_nonce=segment.wrapped.nonce,
            encrypted_key=segment.wrapped.ciphertext,
            inline_data=BlockCipher(segment.key, upload.parameters).encrypt(0, plain, last=True),
            plain_size=len(plain),
            encrypted_etag=segment.seal_note(upload, is_last=is_last),
        )
    )


def _write_remote(
    session: Session,
    upload: Upload,
    segment: _Segment,
    source: ChunkReader,
    flight: SegmentsInFlight,
) -> int:
    begun = session.metainfo.begin_segment(
        pb.SegmentBeginRequest(
            header=session.header,
            upload_id=upload.id,
            position=position_message(segment.position),
        )
    )
    blocks = SegmentEncryption(
        BlockCipher(segment.key, upload.parameters),
        source,
        session.limits.segment_size,
        upload.parameters.plain_block,
    )

    def store(encrypted: Iterator[bytes]) -> None:
        _store_pieces(session, upload, segment, begun, blocks, encrypted)

    flight.store(store, blocks)
    return blocks.plain_size


def _store_pieces(
    session: Session,
    upload: Upload,
    segment: _Segment,
    begun: pb.SegmentBeginResponse,
    blocks: SegmentEncryption,
    encrypted: Iterator[bytes],
) -> None:
    """Pieces onto nodes, then the segment's row; ``blocks`` knows its size once all have come."""
    held = put_on_nodes(session, begun, encrypted, upload.expires)
    try:
        note = segment.seal_note(upload, is_last=blocks.ends_source)
    except BaseException:
        discard_pieces(held, begun.root_piece_id)
        raise
    try:
        faults.point("upload.pieces")
        _commit_segment(session, upload, segment, begun, blocks.plain_size, note, held)
    except REFUSED:
        # Only then: after a lost answer the satellite may well hold the segment.
        discard_pieces(held, begun.root_piece_id)
        raise


def put_on_nodes(
    session: Session,
    begun: pb.SegmentBeginResponse,
    encrypted: Iterable[bytes],
    expires: datetime | None,
) -> list[Target]:
    """The pieces of a segment that was begun; those that are stored, which are enough."""
    return upload_pieces(
        [_target(session, each) for each in begun.pieces],
        Coder(redundancy_of(begun.redundancy)),
        begun.root_piece_id,
        encrypted,
        expires=expires,
        patience=session.settings.upload_patience,
        spares=list(_spare_targets(session, begun.spares)),
    )


def _target(session: Session, limit: pb.PieceLimit) -> Target:
    return Target(limit.number, session.node(limit.node), limit.token)


def _spare_targets(session: Session, limits: Iterable[pb.PieceLimit]) -> Iterator[Target]:
    for each in limits:
        # One that cannot be opened here (for want of an extra, say) may well not be needed.
        with suppress(CalqueError):
            yield _target(session, each)


def _commit_segment(
    session: Session,
    upload: Upload,
    segment: _Segment,
    begun: pb.SegmentBeginResponse,
    plain_size: int,
    note: bytes,
    held: list[Target],
) -> None:
    request = describe_segment(begun, segment.wrapped, upload.parameters, plain_size, held)
    request.header.CopyFrom(session.header)
    request.encrypted_etag = note
    session.metainfo.commit_segment(request)


def describe_segment(
    begun: pb.SegmentBeginResponse,
    wrapped: Sealed,
    parameters: EncryptionParameters,
    plain_size: int,
    held: list[Target],
) -> pb.SegmentCommitRequest:
    """A segment whose pieces lie on nodes, as the satellite is told of it."""
    return pb.SegmentCommitRequest(
        segment_id=begun.segment_id,
        encrypted_key_nonce=wrapped.nonce,
        encrypted_key=wrapped.ciphertext,
        encrypted_size=parameters.encrypted_size(plain_size),
        plain_size=plain_size,
        pieces=[pb.Piece(number=each.number, node_id=each.node.id) for each in held],
    )


def position_message(position: Position) -> pb.SegmentPosition:
    return pb.SegmentPosition(part_number=position.part, index=position.index)
