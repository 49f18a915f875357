"""A copy through the client that can be resumed: ranges are read and written as parts.

A part is read whole and written whole by one thread, so no more requests are in flight than parts,
and what the target holds of an unfinished copy is not sent again. All parts together are held
against every checksum that the source has, before the commit. A resumed copy has not seen the parts
of the process before it: it is held against the target's checksum alone, where both are of a kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from calque.errors import ConditionNotMatch, IntegrityError, NotFound
from calque.operator.drivers.multipart import MultipartDriver
from calque.operator.drivers.verbs import Part
from calque.operator.drivers.whole_digest import WholeDigest
from calque.operator.http.body import damaged
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
    verify: bool = True
    _whole: list[WholeDigest] = field(default_factory=list, repr=False)
    """That of the upload which this process has begun."""

    def initiate(self) -> str:
        self._whole.clear()
        if self.verify:
            known = self.source.checksum
            self._whole.append(WholeDigest((known,) if known else ()))
        return self.target.initiate()

    def copy_part(self, upload: str, number: int, span: ByteRange) -> Part:
        if not self._whole:
            with self._one_place():
                return self.target.put_part(upload, number, self._read(span))
        whole = self._whole[0]
        try:
            # One place for both: the body of a read is on the wire until its last byte.
            with ExitStack() as held:
                with whole.begin(number):
                    held.enter_context(self._one_place())
                data = self._read(span, whole)
                whole.add(number, data)
                return self.target.put_part(upload, number, data)
        except BaseException:
            whole.give_up()
            raise

    def _read(self, span: ByteRange, whole: WholeDigest | None = None) -> bytes:
        options = pinned_options(self.origin, self.source, span)
        if whole is not None:
            options = replace(options, learn=whole.learn)
        data = read_all(self.origin, self.source.path, options)
        if len(data) != span.length:
            raise IntegrityError(
                f"{self.origin.location(self.source.path)} gave {len(data)} bytes at "
                f"{span.offset}, not {span.length}"
            )
        return data

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
        broken = self._whole[0].find_broken() if self._whole else None
        if broken is not None:
            raise damaged(self.origin.location(self.source.path), *broken)
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
