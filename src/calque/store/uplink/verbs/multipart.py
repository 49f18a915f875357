"""Upload an object in parts: in any order, at the same time, with gaps in their numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial

from calque.errors import InvalidInput
from calque.store.chunks import ChunkReader, Data
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.metainfo.timestamps import as_datetime
from calque.store.uplink.encryption.access import Located
from calque.store.uplink.encryption.cipher import Sealed
from calque.store.uplink.encryption.part_etag import open_etag, open_slice_etag
from calque.store.uplink.encryption.segment_keys import Position, unwrap_segment_key
from calque.store.uplink.etags import stream_of
from calque.store.uplink.objects import ObjectInfo, object_info, parameters_of
from calque.store.uplink.parts import Attempt, PartEtag, PartInfo, gather_parts
from calque.store.uplink.plain_names import name_missing_object
from calque.store.uplink.segments.write_segments import Upload, write_segments
from calque.store.uplink.session import Session
from calque.store.uplink.verbs.copy_part import copy_range, join_keys
from calque.store.uplink.verbs.upload import begin_upload, commit_upload
from calque.values.metadata import EMPTY


class MultipartUpload:
    """An upload in parts, not visible until :meth:`commit`. Parts may come from many threads."""

    def __init__(
        self, session: Session, upload: Upload, metadata: Mapping[str, str] = EMPTY
    ) -> None:
        self._session = session
        self._upload = upload
        self.metadata = metadata
        """What the upload began with."""

    @property
    def id(self) -> bytes:
        """What another process needs to go on with this upload."""
        return self._upload.id

    def upload_part(self, number: int, data: Data, *, etag: PartEtag = "") -> int:
        """Store one part, numbered from 1 to 10,000; its size.

        A part that exists is replaced as a whole, and only when this succeeds; of several that
        bring the same part the last to end has it. The ``etag`` is kept with the part, encrypted;
        a function is called once the last byte was read, and what it raises ends the part.
        """
        attempt = Attempt.begin(number, etag)
        source = ChunkReader(data)
        try:
            return write_segments(
                self._session, self._upload, source, part=attempt.part, note=attempt.note
            )
        finally:
            source.close()

    def copy_part(
        self,
        number: int,
        bucket: str,
        key: str,
        *,
        offset: int = 0,
        length: int | None = None,
        if_match: str | None = None,
        etag: PartEtag = "",
    ) -> int:
        """Make a range of an object of the same project a part; its size. No byte is read.

        The part refers to the source's contents from now on, and keeps them alive whatever becomes
        of the source. Parts that are all of one object, in order, make the upload an ordinary copy
        of it when it is committed. An object has one expiry, so sources must have the upload's
        (an upload without parts takes on that of its first source).
        """
        if offset < 0 or (length is not None and length < 0):
            raise InvalidInput(f"a byte range cannot be negative: offset {offset}, length {length}")
        source = self._session.locate(bucket, key)
        attempt = Attempt.begin(number, etag)
        return copy_range(
            self._session, self._upload, attempt, source, offset, length, stream_of(if_match)
        )

    def parts(self) -> list[PartInfo]:
        """The parts that the satellite holds, by number."""
        suite, located = self._upload.parameters.suite, self._upload.located
        return gather_parts(self._segments(), partial(read_note, suite, located))

    def _segments(self) -> Iterator[pb.Segment]:
        request = pb.SegmentListRequest(header=self._session.header, upload_id=self._upload.id)
        return list_segments(self._session, request)

    def commit(
        self,
        *,
        parts: Sequence[int | PartInfo] | None = None,
        metadata: Mapping[str, str] | None = None,
        if_not_exists: bool = False,
        if_match: str | None = None,
    ) -> ObjectInfo:
        """Make the parts, in the order of their numbers, the object at the key.

        Only ``parts``, where they are given: by number, or as :meth:`parts` told them, which saves
        a look. The others go in the same transaction.
        """
        chosen = self._chosen(parts)
        return commit_upload(
            self._session,
            self._upload,
            metadata=metadata,
            parts=[part.attempt for part in chosen],
            joined_keys=self._joined_keys(chosen),
            if_not_exists=if_not_exists,
            if_match=stream_of(if_match),
        )

    def _joined_keys(self, chosen: Sequence[PartInfo]) -> list[pb.EncryptedKeyAndNonce]:
        if not chosen or not all(part.copied for part in chosen):
            return []
        attempts = {part.attempt for part in chosen}
        segments = [each for each in self._segments() if each.position.part_number in attempts]
        return join_keys(self._upload, segments, self._session.limits.keys_per_request)

    def _chosen(self, wanted: Sequence[int | PartInfo] | None) -> list[PartInfo]:
        given = [part for part in wanted or () if isinstance(part, PartInfo)]
        if wanted is not None and len(given) == len(wanted):
            return given
        there = {part.number: part for part in self.parts()}
        if wanted is None:
            return list(there.values())
        numbers = [part if isinstance(part, int) else part.number for part in wanted]
        missing = [number for number in numbers if number not in there]
        if missing:
            raise InvalidInput(
                f"part {missing[0]} of this upload is not there", hint="Upload it, or leave it out."
            )
        return [there[number] for number in numbers]

    def abort(self) -> None:
        """Give the upload and its parts up; one that is gone is an error of the satellite's."""
        self._session.metainfo.abort_object(
            pb.ObjectAbortRequest(header=self._session.header, upload_id=self._upload.id)
        )


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
    return MultipartUpload(session, upload, metadata)


def list_parts(session: Session, bucket: str, key: str) -> list[PartInfo]:
    """The parts that a committed object was uploaded in; empty where it was in one go, and where
    nobody can tell any more, since ranges of one source that touched are one."""
    located = session.locate(bucket, key)
    request = pb.SegmentListRequest(
        header=session.header, bucket=bucket, encrypted_object_key=located.encrypted
    )
    with name_missing_object(located):
        found = session.metainfo.get_object(
            pb.ObjectGetRequest(
                header=session.header, bucket=bucket, encrypted_object_key=located.encrypted
            )
        ).object
    request.stream_id = found.stream_id
    suite = found.encryption_parameters.cipher_suite
    segments = (each for each in list_segments(session, request) if each.position.part_number)
    parts = gather_parts(segments, partial(read_note, suite, located))
    return parts if sum(part.size for part in parts) == found.total_plain_size else []


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
    return MultipartUpload(session, upload, object_info(found, located).metadata)


def list_segments(session: Session, request: pb.SegmentListRequest) -> Iterator[pb.Segment]:
    """Every segment that the request means, page by page."""
    while True:
        page = session.metainfo.list_segments(request)
        yield from page.segments
        if not page.more:
            return
        request.cursor.CopyFrom(page.segments[-1].position)


def read_note(suite: int, located: Located, segment: pb.Segment) -> str:
    """What was kept with a segment."""
    position = Position(segment.position.part_number, segment.position.index)
    wrapped = Sealed(segment.encrypted_key_nonce, segment.encrypted_key)
    key = unwrap_segment_key(suite, located, wrapped, position)
    open_note = open_slice_etag if segment.HasField("origin") else open_etag
    return open_note(suite, key, segment.encrypted_etag)
