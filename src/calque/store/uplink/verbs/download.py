"""Download an object, or a range of it."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from calque.errors import (
    ConditionNotMatch,
    IntegrityError,
    InvalidInput,
    NotFound,
    Unavailable,
)
from calque.store.chunks import ChunkReader
from calque.store.metainfo.pb import metainfo_pb2 as pb
from calque.store.uplink.encryption.access import Located
from calque.store.uplink.etags import stream_of
from calque.store.uplink.objects import ObjectInfo, object_info, parameters_of
from calque.store.uplink.plain_names import name_missing_object
from calque.store.uplink.segments.read_segment import read_segment
from calque.store.uplink.session import Session

_BEYOND = 2**62
"""Past the end of any object, and what a message can carry."""

_LISTINGS = 3
"""How often one segment is listed again before its failure is believed."""

_log = logging.getLogger(__name__)


class Download:
    """The bytes of one object as it was when the download began: iterate, or :meth:`read`.

    Later segments are asked for by the contents' own id: when the object is replaced midway the
    download fails, and never mixes two contents. When pieces have gone elsewhere since they were
    listed (a repair, a node that left) their segment is listed again and read on.
    """

    def __init__(
        self, session: Session, located: Located, offset: int, length: int | None, stream: bytes
    ) -> None:
        self._session = session
        self._located = located
        self._start = min(offset, _BEYOND)
        self._limit = None if length is None else min(offset + length, _BEYOND)
        with name_missing_object(located):
            page = self._page(None, stream)
        if stream and page.object.stream_id != stream:
            raise ConditionNotMatch(f"{located.bucket}/{located.key} has changed")
        self.info: ObjectInfo = object_info(page.object, located)
        """The object, with its metadata."""
        end = self.info.size if self._limit is None else min(self._limit, self.info.size)
        self.size: int = max(0, end - self._start)
        """How many bytes will come."""
        self._chunks = self._read(page, end)
        self._reader = ChunkReader(self._chunks)

    def __iter__(self) -> Iterator[bytes]:
        return self._reader.rest()

    def read(self, size: int = -1) -> bytes:
        """As of a file: up to ``size`` bytes, or all that is left; empty at the end."""
        if size < 0:
            return b"".join(self._reader.rest())
        return bytes(self._reader.read(size))

    def close(self) -> None:
        """Stop reading from the nodes."""
        self._chunks.close()  # type: ignore[attr-defined]  # a generator

    def _read(self, page: pb.SegmentListResponse, end: int) -> Iterator[bytes]:
        while True:
            for segment in page.segments:
                first = max(self._start, segment.plain_offset)
                last = min(end, segment.plain_offset + segment.plain_size)
                if first < last:
                    yield from self._read_segment(page, segment, first, last)
            if not page.more:
                return
            page = self._page(page.segments[-1].position, page.object.stream_id)

    def _read_segment(
        self, page: pb.SegmentListResponse, segment: pb.Segment, first: int, last: int
    ) -> Iterator[bytes]:
        """Plain bytes ``first`` to ``last`` of the object, which this segment holds."""
        parameters = parameters_of(page.object.encryption_parameters)
        listings = 0
        while True:
            nodes = {node.id: node for node in page.nodes}
            offset = first - segment.plain_offset
            try:
                for chunk in read_segment(
                    self._session, self._located, parameters, segment, nodes, offset, last - first
                ):
                    first += len(chunk)
                    yield chunk
                return
            except (NotFound, Unavailable, IntegrityError) as error:
                page = self._list_segments(page.object.stream_id, None, first, last, 1)
                # The same places again mean that nothing was moved: the failure is real.
                listings += 1
                if listings > _LISTINGS or page.segments[0].pieces == segment.pieces:
                    raise
                _log.info("the pieces of a segment were moved while it was read: %s", error)
                segment = page.segments[0]

    def _page(self, cursor: pb.SegmentPosition | None, stream: bytes) -> pb.SegmentListResponse:
        return self._list_segments(
            stream, cursor, self._start, self._limit, self._session.settings.segment_page
        )

    def _list_segments(
        self,
        stream: bytes,
        cursor: pb.SegmentPosition | None,
        start: int,
        end: int | None,
        limit: int,
    ) -> pb.SegmentListResponse:
        return self._session.metainfo.list_segments(
            pb.SegmentListRequest(
                header=self._session.header,
                bucket=self._located.bucket,
                encrypted_object_key=self._located.encrypted,
                stream_id=stream,
                cursor=cursor,
                limit=limit,
                range_start=start,
                range_limit=end,
            )
        )


def download_object(
    session: Session,
    bucket: str,
    key: str,
    *,
    offset: int = 0,
    length: int | None = None,
    if_match: str | None = None,
) -> Download:
    """Begin to read an object; NotFound at once when there is none.

    A range is cut like a slice: what lies past the end is not there.
    """
    if offset < 0 or (length is not None and length < 0):
        raise InvalidInput(f"a byte range cannot be negative: offset {offset}, length {length}")
    return Download(session, session.locate(bucket, key), offset, length, stream_of(if_match))
