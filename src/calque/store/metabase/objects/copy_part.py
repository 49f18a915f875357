"""Ranges of an object become segments of an upload: slices, for which no byte is read.

The rows are there from now on and keep what they are cut from alive, whatever becomes of the
source before the upload is committed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import bindparam, literal_column, select, update

from calque.errors import FailedPrecondition, InvalidInput, NotFound, Unsupported
from calque.store.metabase.accounts.buckets import BUCKET_PLACEMENT, require_bucket
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.locks import key_locks, lock_families
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model import checks as verify
from calque.store.metabase.model.records import (
    Encryption,
    ObjectLocation,
    ObjectRecord,
    Position,
    SegmentRecord,
)
from calque.store.metabase.model.schema import objects, segments
from calque.store.metabase.objects.commit_segment import INSERT_SEGMENT, MAX_ETAG_SIZE
from calque.store.metabase.streams.lookup import (
    COMMITTED_AT,
    FoundObject,
    at,
    live,
    object_in,
)
from calque.store.metabase.streams.slices import (
    INSERT_SLICE,
    Slice,
    require_room,
    slices_of,
)

TAG_SIZE = 16

SEGMENTS_BETWEEN = Statement(
    "segments between two positions",
    select(segments)
    .where(
        segments.c.stream_id == bindparam("of_stream"),
        segments.c.position.between(bindparam("first"), bindparam("last")),
    )
    .order_by(segments.c.position),
)
UPLOAD = Statement(
    "upload that gets a copied part",
    select(objects.c.expires_at, objects.c.encryption).where(
        objects.c.stream_id == bindparam("stream_id"),
        objects.c.status == literal_column("1"),
    ),
)
ADOPT_EXPIRY = Statement(
    "expire an upload without segments with its source",
    update(objects)
    .where(
        objects.c.stream_id == bindparam("of_stream"),
        objects.c.status == literal_column("1"),
        objects.c.expires_at.is_(None),
        ~select(segments.c.position).where(segments.c.stream_id == objects.c.stream_id).exists(),
    )
    .values(expires_at=bindparam("new_expires_at")),
)


class PartSlice(NamedTuple):
    """Where the slice goes, from where it is cut, and its key for the new place."""

    position: Position
    source_position: Position
    skip: int
    length: int
    nonce: bytes
    key: bytes
    etag: bytes


@dataclass(frozen=True)
class CopyPart:
    """Slices of the object at ``source``, which must be ``source_stream_id``, for an upload.

    Without any (the range is inline, and its bytes are sent) the upload takes on the source's
    expiry all the same, where it has neither one nor segments.
    """

    target: ObjectLocation
    stream_id: bytes
    source: ObjectLocation
    source_stream_id: bytes
    slices: tuple[PartSlice, ...]

    def __post_init__(self) -> None:
        verify.location(self.target)
        verify.location(self.source, "source")
        verify.stream_id(self.stream_id)
        verify.stream_id(self.source_stream_id, "source stream id")
        if self.source.project_id != self.target.project_id:
            raise InvalidInput("source and destination belong to different projects")
        verify.key_count(len(self.slices))
        for each in self.slices:
            each.position.check()
            each.source_position.check()
            verify.wrapped_key(each.key, each.nonce)
            if each.skip < 0 or each.length < 1:
                raise InvalidInput(f"{each.length} bytes from {each.skip} on are no range")
            if len(each.etag) > MAX_ETAG_SIZE:
                raise InvalidInput(f"encrypted etag is longer than {MAX_ETAG_SIZE} bytes")
        if len({each.position for each in self.slices}) != len(self.slices):
            raise InvalidInput("two ranges are given for one position")


def copy_part(database: Database, request: CopyPart) -> None:
    """Record the slices; a repeat of the call changes nothing."""
    database.write(lambda transaction: _copy(transaction, request))


def _copy(transaction: Transaction, request: CopyPart) -> None:
    bucket, found = transaction.batch(
        [
            *key_locks(transaction, exclusive=[request.source]),
            (BUCKET_PLACEMENT, at(request.target)),
            (COMMITTED_AT, at(request.source)),
        ]
    )[-2:]
    placement = require_bucket(bucket, request.target.bucket)
    source = _require_source(transaction, request, object_in(found))
    # In one statement with the source, and so in the order in which the commit of the upload locks
    # both. Whoever adds another part waits: what is read of the upload now stays true.
    lock_families(
        transaction, [(source.object.stream_id, source.ancestor)], also=[request.stream_id]
    )
    _adopt_expiry(transaction, request, source.object)
    if not request.slices:
        return
    expires_at = _require_upload(transaction, request, source.object)
    if _is_repeat(transaction, request):
        return
    cut = _cut(transaction, request, source)
    _require_placement(placement, cut)
    require_room(transaction, request.stream_id, [each.source_stream_id for each, _ in cut])
    _store(transaction, request, cut, expires_at, Encryption.decode(source.object.encryption))


def _require_source(
    transaction: Transaction, request: CopyPart, found: FoundObject | None
) -> FoundObject:
    source = live(found, transaction.now)
    if source is None:
        raise NotFound(f"source object does not exist in bucket {request.source.bucket!r}")
    if source.object.stream_id != request.source_stream_id:
        raise FailedPrecondition("the source was replaced since it was read")
    return source


def _adopt_expiry(transaction: Transaction, request: CopyPart, source: ObjectRecord) -> None:
    """Have an upload with neither segments nor an expiry end with the source."""
    if source.expires_at is not None:
        transaction.run(
            ADOPT_EXPIRY, {"of_stream": request.stream_id, "new_expires_at": source.expires_at}
        )


def _require_upload(
    transaction: Transaction, request: CopyPart, source: ObjectRecord
) -> int | None:
    """The upload's expiry, which is that of the source."""
    row = transaction.row(UPLOAD, {"stream_id": request.stream_id})
    if row is None:
        raise NotFound("the upload is not there any more: it was committed or aborted")
    if row[0] != source.expires_at:
        raise FailedPrecondition(
            "the source expires at another time than this upload",
            hint="An object has one expiry: take sources of the same, or upload the bytes.",
        )
    if row[1] != source.encryption:
        raise Unsupported(
            "the source is encrypted with another cipher or block size than this upload",
            hint="Download the range and upload it as a part.",
        )
    return source.expires_at


def _is_repeat(transaction: Transaction, request: CopyPart) -> bool:
    first = min(each.position for each in request.slices).encode()
    last = max(each.position for each in request.slices).encode()
    where = {"of_stream": request.stream_id, "first": first, "last": last}
    there = [SegmentRecord(*row) for row in transaction.rows(SEGMENTS_BETWEEN, where)]
    wanted = {each.position.encode(): each.key for each in request.slices}
    if not wanted.keys() & {each.position for each in there}:
        return False
    if wanted.items() <= {each.position: each.encrypted_key for each in there}.items():
        return True
    raise FailedPrecondition("there are segments at these positions", hint="Copy the part again.")


def _cut(
    transaction: Transaction, request: CopyPart, source: FoundObject
) -> list[tuple[Slice, SegmentRecord]]:
    """Each slice of the row that holds the pieces, with the source's own segment."""
    stream_id = source.object.stream_id
    places = [each.source_position.encode() for each in request.slices]
    where = {"of_stream": stream_id, "first": min(places), "last": max(places)}
    there = {row[1]: SegmentRecord(*row) for row in transaction.rows(SEGMENTS_BETWEEN, where)}
    own = {each.position: each for each in slices_of(transaction, [stream_id]).get(stream_id, [])}
    cut: list[tuple[Slice, SegmentRecord]] = []
    for each, place in zip(request.slices, places, strict=True):
        segment = there.get(place)
        if segment is None or segment.inline_data is not None:
            raise InvalidInput("the source has no remote segment at a position that was given")
        if each.skip + each.length > segment.plain_size:
            raise InvalidInput(
                f"{each.length} bytes from {each.skip} on reach beyond the segment, "
                f"which has {segment.plain_size}"
            )
        holder, at_place, before = _holder(segment, source, own.get(place))
        row = Slice(
            request.stream_id, each.position.encode(), holder, at_place, before + each.skip,
            each.length,
        )  # fmt: skip
        cut.append((row, segment))
    return cut


def _holder(
    segment: SegmentRecord, source: FoundObject, sliced: Slice | None
) -> tuple[bytes, int, int]:
    """Which row holds the pieces, and how many of its bytes come before the segment's own."""
    if not segment.is_borrowed:
        return segment.stream_id, segment.position, 0
    if sliced is not None:
        return sliced.source_stream_id, sliced.source_position, sliced.skip
    return source.ancestor or segment.stream_id, segment.position, 0


def _require_placement(placement: int, cut: Sequence[tuple[Slice, SegmentRecord]]) -> None:
    if placement and any(segment.placement != placement for _, segment in cut):
        raise FailedPrecondition(
            "the destination bucket has another placement than the pieces of the source"
        )


def _store(
    transaction: Transaction,
    request: CopyPart,
    cut: Sequence[tuple[Slice, SegmentRecord]],
    expires_at: int | None,
    encryption: Encryption,
) -> None:
    work = []
    for given, (row, segment) in zip(request.slices, cut, strict=True):
        made = segment._replace(
            stream_id=request.stream_id,
            position=row.position,
            created_at=transaction.now,
            repaired_at=None,
            expires_at=expires_at,
            encrypted_key_nonce=given.nonce,
            encrypted_key=given.key,
            encrypted_size=_encrypted_size(row.length, segment, encryption),
            plain_size=row.length,
            plain_offset=0,
            encrypted_etag=given.etag or None,
            remote_alias_pieces=None,
        )
        work += [(INSERT_SEGMENT, made._asdict()), (INSERT_SLICE, row._asdict())]
    transaction.run_batch(work)


def _encrypted_size(length: int, segment: SegmentRecord, encryption: Encryption) -> int:
    """What a slice is charged: the whole segment, or what its bytes would take by themselves."""
    return (
        segment.encrypted_size if length == segment.plain_size else sliced_size(length, encryption)
    )


def sliced_size(length: int, encryption: Encryption) -> int:
    """What so many bytes take when they are encrypted."""
    return length + TAG_SIZE * -(-length // max(encryption.block_size - TAG_SIZE, 1))
