"""A range of an object as a part of an upload: references and keys, no byte comes from a node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from calque.errors import ConditionNotMatch, InvalidInput, Unsupported
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.uplink.encryption.access import Located
from calque.store.uplink.encryption.cipher import Sealed
from calque.store.uplink.encryption.part_etag import seal_slice_etag
from calque.store.uplink.encryption.segment_keys import (
    Position,
    unwrap_segment_key,
    wrap_segment_key,
)
from calque.store.uplink.objects import parameters_of
from calque.store.uplink.parts import Attempt
from calque.store.uplink.plain_names import name_missing_object
from calque.store.uplink.segments.read_segment import read_segment
from calque.store.uplink.segments.write_segments import Upload, position_message, write_inline
from calque.store.uplink.session import Session

_MOST_SLICES = 1000
"""In one call: each has a key and an etag."""


@dataclass(frozen=True, slots=True)
class _Cut:
    """The bytes of a source's segment that belong to the range."""

    segment: pb.Segment
    skip: int
    length: int


def copy_range(
    session: Session,
    upload: Upload,
    attempt: Attempt,
    source: Located,
    offset: int,
    length: int | None,
    stream: bytes,
) -> int:
    """Make a range of an object the segments of an attempt; how many bytes it has.

    Small segments that the satellite keeps inline are encrypted anew, since they have no pieces
    to refer to. All others become references, which keep what they are cut from alive.
    """
    found, cuts = _read_cuts(session, source, offset, length, stream)
    if parameters_of(found.encryption_parameters) != upload.parameters:
        raise Unsupported(
            f"{source} is encrypted with another cipher or block size than this upload",
            hint="Download the range and upload it as a part.",
        )
    last = len(cuts) - 1
    slices = [
        _slice(upload, source, cut, Position(attempt.part, index), attempt.note(index == last))
        for index, cut in enumerate(cuts)
        if not cut.segment.inline
    ]
    # First, since an upload takes on the expiry of its first source only while it has no segment.
    # So there is a call without slices too, where the source expires.
    for start in range(0, len(slices) or found.HasField("expires_at"), _MOST_SLICES):
        session.metainfo.copy_part(
            pb.PartCopyRequest(
                header=session.header,
                upload_id=upload.id,
                bucket=source.bucket,
                encrypted_object_key=source.encrypted,
                stream_id=found.stream_id,
                slices=slices[start : start + _MOST_SLICES],
            )
        )
    for index, cut in enumerate(cuts):
        if cut.segment.inline:
            plain = b"".join(
                read_segment(
                    session, source, upload.parameters, cut.segment, {}, cut.skip, cut.length
                )
            )
            position = Position(attempt.part, index)
            write_inline(session, upload, position, plain, attempt.note, is_last=index == last)
    if not cuts:
        write_inline(session, upload, Position(attempt.part, 0), b"", attempt.note, is_last=True)
    return sum(cut.length for cut in cuts)


def join_keys(
    upload: Upload, segments: Sequence[pb.Segment], most: int
) -> list[pb.EncryptedKeyAndNonce]:
    """Keys for a copy of the source, where these slices seem to be all of it, in order; else none.

    Whether they are is for the satellite to see, which knows the source.
    """
    keys: list[pb.EncryptedKeyAndNonce] = []
    end, before = 0, (-1, -1)
    for segment in segments:
        origin = segment.origin
        place = (origin.position.part_number, origin.position.index)
        begins = origin.skip == 0 and end == 0 and place > before
        goes_on = origin.skip == end and place == before
        if not begins and not (end and goes_on):
            return []
        if begins:
            keys.append(_rewrapped(upload, segment, Position(*place)))
            before = place
        end = origin.skip + segment.plain_size
        end = 0 if end == origin.plain_size else end
    return keys if end == 0 and len(keys) <= most else []


def _read_cuts(
    session: Session, source: Located, offset: int, length: int | None, stream: bytes
) -> tuple[pb.Object, list[_Cut]]:
    request = pb.SegmentListRequest(
        header=session.header,
        bucket=source.bucket,
        encrypted_object_key=source.encrypted,
        range_start=offset,
    )
    if length is not None:
        request.range_limit = offset + length
    with name_missing_object(source):
        page = session.metainfo.list_segments(request)
    found = page.object
    if stream and found.stream_id != stream:
        raise ConditionNotMatch(f"{source} has changed")
    end = found.total_plain_size if length is None else offset + length
    if offset > end or end > found.total_plain_size:
        raise InvalidInput(
            f"bytes {offset} to {end} of {source} are asked for, it has {found.total_plain_size}"
        )
    request.stream_id = found.stream_id
    cuts = list(_cut(page.segments, offset, end))
    while page.more:
        request.cursor.CopyFrom(page.segments[-1].position)
        page = session.metainfo.list_segments(request)
        cuts.extend(_cut(page.segments, offset, end))
    return found, cuts


def _cut(segments: Sequence[pb.Segment], offset: int, end: int) -> Iterator[_Cut]:
    for segment in segments:
        first = max(offset, segment.plain_offset)
        last = min(end, segment.plain_offset + segment.plain_size)
        if first < last:
            yield _Cut(segment, first - segment.plain_offset, last - first)


def _slice(
    upload: Upload, source: Located, cut: _Cut, position: Position, note: str
) -> pb.PartSlice:
    suite, segment = upload.parameters.suite, cut.segment
    old = Position(segment.position.part_number, segment.position.index)
    key = unwrap_segment_key(
        suite, source, Sealed(segment.encrypted_key_nonce, segment.encrypted_key), old
    )
    wrapped = wrap_segment_key(suite, upload.located, key, position)
    return pb.PartSlice(
        position=position_message(position),
        source_position=segment.position,
        skip=cut.skip,
        length=cut.length,
        encrypted_key_nonce=wrapped.nonce,
        encrypted_key=wrapped.ciphertext,
        encrypted_etag=seal_slice_etag(suite, key, note),
    )


def _rewrapped(upload: Upload, segment: pb.Segment, place: Position) -> pb.EncryptedKeyAndNonce:
    suite = upload.parameters.suite
    here = Position(segment.position.part_number, segment.position.index)
    key = unwrap_segment_key(
        suite, upload.located, Sealed(segment.encrypted_key_nonce, segment.encrypted_key), here
    )
    wrapped = wrap_segment_key(suite, upload.located, key, place)
    return pb.EncryptedKeyAndNonce(
        position=position_message(place),
        encrypted_key_nonce=wrapped.nonce,
        encrypted_key=wrapped.ciphertext,
    )
