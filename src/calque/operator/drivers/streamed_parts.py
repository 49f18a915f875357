"""A copy through the client that can be resumed: ranges are read and written as parts.

A part is read whole and written whole by one thread, so no more requests are in flight than parts,
and what the target holds of an unfinished copy is not sent again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from calque.errors import ConditionNotMatch, IntegrityError, NotFound
from calque.operator.drivers.multipart import MultipartDriver
from calque.operator.drivers.verbs import Part
from calque.operator.layers.limit import ConcurrencyLimit
from calque.operator.options import CopyOptions
from calque.operator.read import pinned_options, read_all
from calque.operator.service import PartedWrite, Service
from calque.values import ByteRange, Metadata

NAME = "streamed parts"


class StreamedPartsDriver(MultipartDriver):
    """The multipart driver, its parts filled by the client."""

    _name = NAME


@dataclass(frozen=True, slots=True)
class StreamedParts:
    """The verbs of the driver: a source that is read, a target that is written."""

    origin: Service
    source: Metadata
    into: Service
    target: PartedWrite

    def initiate(self) -> str:
        return self.target.initiate()

    def copy_part(self, upload: str, number: int, span: ByteRange) -> Part:
        # One place for both: the body of a read is on the wire until its last byte.
        with self._one_place():
            options = pinned_options(self.origin, self.source, span)
            data = read_all(self.origin, self.source.path, options)
            if len(data) != span.length:
                raise IntegrityError(
                    f"{self.origin.location(self.source.path)} gave {len(data)} bytes at "
                    f"{span.offset}, not {span.length}"
                )
            return self.target.put_part(upload, number, data)

    @contextmanager
    def _one_place(self) -> Iterator[None]:
        limits = (each for each in self.into.chain.layers if isinstance(each, ConcurrencyLimit))
        limit = next(limits, None)
        if limit is None:
            yield
            return
        with limit.place():
            yield

    def list_parts(self, upload: str) -> Mapping[int, Part]:
        return self.target.list_parts(upload)

    def complete(self, upload: str, parts: Sequence[Part]) -> Metadata:
        self._refuse_changed()
        return self.target.complete(upload, parts)

    def _refuse_changed(self) -> None:
        """Each part was pinned; where a service cannot pin, a change is found here at last."""
        can, source = self.origin.capability, self.source
        if can.read_with_if_match or can.read_tells_etag:
            return
        version = source.version if can.read_with_version else None
        try:
            found = self.origin.stat(source.path, version=version)
        except NotFound:
            found = None
        if found is None or found.pin != source.pin:
            raise ConditionNotMatch(
                f"{self.origin.location(source.path)} was changed while it was being copied",
                hint="Copy it again.",
            )

    def find_committed(self, upload: str, parts: Sequence[Part]) -> Metadata | None:
        return self.target.find_committed(upload, parts)

    def abort(self, upload: str) -> None:
        self.target.abort(upload)


def stream_in_parts(verbs: StreamedParts, options: CopyOptions) -> StreamedPartsDriver:
    """The driver of a new copy."""
    plan = verbs.target.plan(verbs.source.size, options.chunk)
    return StreamedPartsDriver(verbs, plan, concurrent=options.concurrent)


def resume_parts(
    verbs: StreamedParts, options: CopyOptions, state: Mapping[str, Any]
) -> StreamedPartsDriver:
    """The driver of an earlier copy."""
    return StreamedPartsDriver.resume(
        verbs, state, concurrent=options.concurrent, size=verbs.source.size
    )
