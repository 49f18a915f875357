"""Upload an object in parts: in any order, at the same time, with gaps in their numbers."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from calque.errors import InvalidInput
from calque.store.chunks import ChunkReader, Data
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.metainfo.timestamps import as_datetime
from calque.store.uplink.cipher import Sealed
from calque.store.uplink.etags import stream_of
from calque.store.uplink.metadata import seal_metadata
from calque.store.uplink.objects import ObjectInfo, parameters_of
from calque.store.uplink.part_etag import open_etag
from calque.store.uplink.paths import decrypt_path
from calque.store.uplink.segment_keys import Position, unwrap_segment_key
from calque.store.uplink.session import Session
from calque.store.uplink.upload import begin_upload, commit_upload
from calque.store.uplink.write_segments import (
    Upload,
    empty_segment,
    position_message,
    write_segments,
)
from calque.values.metadata import EMPTY

LAST_PART = 10_000


@dataclass(frozen=True, slots=True)
class PartInfo:
    """A part that the satellite holds."""

    number: int
    size: int
    etag: str


@dataclass(frozen=True, slots=True)
class PendingInfo:
    """An upload that is not committed: it can be gone on with, committed or aborted by its id."""

    bucket: str
    key: str
    upload_id: bytes
    begun: datetime


class MultipartUpload:
    """An upload in parts, not visible until :meth:`commit`. Parts may come from many threads."""

    def __init__(self, session: Session, upload: Upload) -> None:
        self._session = session
        self._upload = upload
        self._door = threading.Lock()
        self._turns: dict[int, threading.Lock] = {}

    @property
    def id(self) -> bytes:
        """What another process needs to go on with this upload."""
        return self._upload.id

    def upload_part(self, number: int, data: Data, *, etag: str = "") -> int:
        """Store one part, numbered from 1 to 10,000; its size.

        A part that exists is replaced; until this returns it is neither the old nor the new one.
        Threads that bring the same part take turns, and the last one's stays; of two processes
        that do, one is refused (FailedPrecondition). The ``etag`` is kept with the part, encrypted.
        """
        if not 1 <= number <= LAST_PART:
            raise InvalidInput(f"a part is numbered from 1 to {LAST_PART}, not {number}")
        source = ChunkReader(data)
        try:
            with self._turn(number):
                written = write_segments(
                    self._session, self._upload, source, part=number, etag=etag
                )
                self._blank_after(Position(number, written.segments - 1))
        finally:
            source.close()
        return written.plain_size

    def _turn(self, number: int) -> threading.Lock:
        """Segments of two uploads of one part must not mix: each would refuse the other's."""
        with self._door:
            return self._turns.setdefault(number, threading.Lock())

    def parts(self) -> list[PartInfo]:
        """The parts that the satellite holds, by number."""
        parts: dict[int, PartInfo] = {}
        for segment in self._segments():
            number = segment.position.part_number
            seen = parts.get(number)
            size = segment.plain_size + (seen.size if seen else 0)
            etag = seen.etag if seen else self._etag(segment)
            parts[number] = PartInfo(number, size, etag)
        return list(parts.values())

    def commit(
        self,
        *,
        metadata: Mapping[str, str] | None = None,
        if_not_exists: bool = False,
        if_match: str | None = None,
    ) -> ObjectInfo:
        """Make the parts, in the order of their numbers, the object at the key."""
        sealed = None
        if metadata is not None:
            sealed = seal_metadata(self._upload.parameters.suite, self._upload.located, metadata)
        return commit_upload(
            self._session,
            self._upload,
            metadata=sealed,
            if_not_exists=if_not_exists,
            if_match=stream_of(if_match),
        )

    def abort(self) -> None:
        """Give the upload and its parts up; one that is gone is an error of the satellite's."""
        self._session.metainfo.abort_object(
            pb.ObjectAbortRequest(header=self._session.header, upload_id=self._upload.id)
        )

    def _etag(self, segment: pb.Segment) -> str:
        suite = self._upload.parameters.suite
        position = Position(segment.position.part_number, segment.position.index)
        wrapped = Sealed(segment.encrypted_key_nonce, segment.encrypted_key)
        key = unwrap_segment_key(suite, self._upload.located, wrapped, position)
        return open_etag(suite, key, segment.encrypted_etag)

    def _blank_after(self, last: Position) -> None:
        """The part may have been longer before: what is left of it must not stay in the object."""
        for segment in self._segments(position_message(last)):
            position = Position(segment.position.part_number, segment.position.index)
            if position.part != last.part:
                return
            if segment.plain_size:
                empty_segment(self._session, self._upload, position)

    def _segments(self, cursor: pb.SegmentPosition | None = None) -> Iterator[pb.Segment]:
        while True:
            page = self._session.metainfo.list_segments(
                pb.SegmentListRequest(
                    header=self._session.header, upload_id=self._upload.id, cursor=cursor
                )
            )
            yield from page.segments
            if not page.more:
                return
            cursor = page.segments[-1].position


def begin_multipart(
    session: Session,
    bucket: str,
    key: str,
    *,
    metadata: Mapping[str, str] = EMPTY,
    expires: datetime | None = None,
) -> MultipartUpload:
    """Begin an upload in parts."""
    upload = begin_upload(session, session.locate(bucket, key), metadata, expires)
    return MultipartUpload(session, upload)


def resume_multipart(session: Session, bucket: str, key: str, upload_id: bytes) -> MultipartUpload:
    """Go on with an upload that was begun elsewhere; its own cipher and expiry are used."""
    located = session.locate(bucket, key)
    found = session.metainfo.list_segments(
        pb.SegmentListRequest(header=session.header, upload_id=upload_id, limit=1)
    ).object
    if found.encrypted_object_key != located.encrypted or found.bucket != bucket:
        raise InvalidInput(f"this upload does not belong to {bucket}/{key}")
    expires = as_datetime(found.expires_at) if found.HasField("expires_at") else None
    upload = Upload(upload_id, located, parameters_of(found.encryption_parameters), expires)
    return MultipartUpload(session, upload)


def list_pending(session: Session, bucket: str, prefix: str = "") -> Iterator[PendingInfo]:
    """Uploads that are not committed, below a prefix (empty or ending in ``/``), in no order."""
    path = session.access.below(bucket, prefix)
    cursor, version = b"", 0
    while True:
        page = session.metainfo.list_objects(
            pb.ObjectListRequest(
                header=session.header,
                bucket=bucket,
                encrypted_prefix=path.encrypted,
                encrypted_cursor=cursor,
                version_cursor=version,
                limit=session.settings.list_page,
                recursive=True,
                status=pb.STATUS_PENDING,
            )
        )
        for item in page.items:
            key = prefix + decrypt_path(path.key, item.encrypted_object_key)
            begun = as_datetime(item.object.created_at)
            yield PendingInfo(bucket, key, item.object.upload_id, begun)
        if not page.more:
            return
        cursor, version = page.items[-1].encrypted_object_key, page.items[-1].object.version
