"""A copy through the client that can be resumed: ranges are read and written as parts.

A part is read whole and written whole by one thread, so no more requests are in flight than parts,
and what the target holds of an unfinished copy is not sent again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

from calque.errors import ConditionNotMatch, IntegrityError, NotFound
from calque.operator.drivers.multipart import MultipartDriver
from calque.operator.drivers.parts_state import parts_of, plan_of
from calque.operator.drivers.verbs import Part
from calque.operator.http.digest import Digest
from calque.operator.layers.limit import ConcurrencyLimit
from calque.operator.options import CopyOptions
from calque.operator.read import pinned_options, read_all
from calque.operator.service import PartedWrite, ReadingBack, Service
from calque.values import ByteRange, Metadata, PartPlan

NAME = "streamed parts"


@dataclass(frozen=True, slots=True)
class StreamedParts:
    """The verbs of the driver: a source that is read, a target that is written.

    ``known`` are the parts that a checkpoint tells of.
    """

    origin: Service
    source: Metadata
    into: Service
    target: PartedWrite
    plan: PartPlan
    known: Mapping[int, Part]
    verify: bool

    @classmethod
    def begin(
        cls,
        origin: Service,
        source: Metadata,
        into: Service,
        target: PartedWrite,
        options: CopyOptions,
    ) -> StreamedParts:
        """Of a new copy."""
        plan = target.plan(source.size, options.chunk)
        return cls(origin, source, into, target, plan, {}, options.verify == "checksum")

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
            return self.target.put_part(upload, number, span, data)

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
        return self.target.list_parts(upload, self.plan, self.known)

    def complete(self, upload: str, parts: Sequence[Part]) -> Metadata:
        self._refuse_changed()
        self._refuse_other_bytes()
        return self.target.complete(upload, parts)

    def _refuse_other_bytes(self) -> None:
        """Ranges bring no checksum of the whole: what can be read back is held against it."""
        promised = self.source.checksum
        if not self.verify or promised is None or not isinstance(self.target, ReadingBack):
            return
        digest = Digest([promised])
        for chunk in self.target.read_back():
            digest.update(chunk)
        if (broken := digest.find_broken()) is not None:
            raise IntegrityError(
                f"{self.origin.location(self.source.path)} was to have the checksum {broken[0]}, "
                f"its bytes as they came have {broken[1]}",
                hint="The target is untouched. Copy again.",
            )

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


class StreamedPartsDriver(MultipartDriver):
    """The multipart driver, its parts filled by the client."""

    _name = NAME

    def __init__(self, verbs: StreamedParts, plan: PartPlan, *, concurrent: int) -> None:
        # Who must wait for the part before would hold a place that that one may need.
        in_flight = 1 if verbs.target.in_order else concurrent
        super().__init__(verbs, plan, concurrent=in_flight)
        self._target = verbs.target
        self.in_any_order = not verbs.target.in_order

    @classmethod
    def resume_streamed(
        cls, verbs: StreamedParts, options: CopyOptions, state: Mapping[str, Any]
    ) -> Self:
        """The driver of an earlier copy; see :meth:`MultipartDriver.resume`."""
        size = verbs.source.size
        verbs = replace(verbs, plan=plan_of(state, size=size), known=parts_of(state))
        return cls.resume(verbs, state, concurrent=options.concurrent, size=size)

    def pause(self) -> None:
        super().pause()
        self._target.release()

    def _show(self, upload: str) -> str:
        # The address of a session is a right to write, which stands behind its question mark.
        return upload.partition("?")[0]

    def _holds_parts(self, upload: str) -> bool:
        return self._target.is_left(upload)
