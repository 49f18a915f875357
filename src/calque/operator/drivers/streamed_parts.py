"""A copy through the client that can be resumed: ranges are read and written as parts.

A part is read whole and written whole by one thread, so no more requests are in flight than parts,
and what the target holds of an unfinished copy is not sent again. All parts together are held
against every checksum that the source has, before the commit. A resumed copy has not seen the parts
of the process before it: a target that can be read back is hashed then. Where the source tells a
CRC, each part's own stands in the checkpoint, and all of them joined are that of the whole. MD5 and
SHA cannot be joined: the target's checksum alone is compared then, where both are of a kind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Self

from calque.errors import CheckpointInvalid, ConditionNotMatch, IntegrityError, NotFound
from calque.operator.drivers.multipart import MultipartDriver
from calque.operator.drivers.parts_state import parts_of, plan_of
from calque.operator.drivers.verbs import Part
from calque.operator.drivers.whole_digest import WholeDigest
from calque.operator.http.body import checksum_error
from calque.operator.http.digest import Digest, crc_of
from calque.operator.layers.chain import Call
from calque.operator.layers.limit import ConcurrencyLimit
from calque.operator.layers.stop import stop_of
from calque.operator.options import CopyOptions
from calque.operator.read import pinned_options, read_all
from calque.operator.service import PartedWrite, ReadingBack, Service
from calque.values import ByteRange, Checksum, Metadata, PartPlan
from calque.values.crc import JOINABLE, join_crcs

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
    _whole: list[WholeDigest] = field(default_factory=list, repr=False)
    """That of the upload which this process has begun."""

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
        self._whole.clear()
        if self.verify:
            promised = self.source.checksum
            # One that can be joined needs no order, and is hashed part by part.
            in_order = (promised,) if promised and self._joinable is None else ()
            self._whole.append(WholeDigest(in_order))
        return self.target.initiate()

    def copy_part(self, upload: str, number: int, span: ByteRange) -> Part:
        if not self._whole:
            with self._one_place():
                return self._put(upload, number, span, self._read(span))
        whole = self._whole[0]
        try:
            # One place for both: the body of a read is on the wire until its last byte.
            with ExitStack() as held:
                with whole.begin(number):
                    held.enter_context(self._one_place())
                data = self._read(span, whole)
                whole.add(number, data)
                return self._put(upload, number, span, data)
        except BaseException:
            whole.give_up()
            raise

    def _put(self, upload: str, number: int, span: ByteRange, data: bytes) -> Part:
        part = self.target.put_part(upload, number, span, data)
        promised = self._joinable
        if promised is None:
            return part
        return replace(part, crc=f"{promised.algorithm}:{crc_of(promised.algorithm, data)}")

    @property
    def _joinable(self) -> Checksum | None:
        """The checksum of the source, where those of its parts can be joined to it."""
        promised = self.source.checksum if self.verify else None
        return promised if promised is not None and promised.algorithm in JOINABLE else None

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
        # An abort must not wait for the places of others, which may be held for long.
        turn = Call("write_part", self.source.path, stopped=stop_of(self.into.chain))
        with limit.place(turn):
            yield

    def list_parts(self, upload: str) -> Mapping[int, Part]:
        held = self.target.list_parts(upload, self.plan, self.known)
        crcs = {number: part for number, part in self.known.items() if self._crc_in(part)}
        if not crcs:
            return held
        # What has landed after the checkpoint was made nobody has a CRC of: it is brought again,
        # which is little, and the whole can be told from its parts.
        return {
            number: replace(part, crc=crcs[number].crc)
            for number, part in held.items()
            if number in crcs and (part.etag, part.size) == _tag_of(crcs[number])
        }

    def complete(self, upload: str, parts: Sequence[Part]) -> Metadata:
        self._refuse_changed()
        self._refuse_other_bytes(parts)
        return self.target.complete(upload, parts)

    def _refuse_other_bytes(self, parts: Sequence[Part]) -> None:
        """Ranges bring no checksum of the whole: the whole is held against it here."""
        if self._whole and self._whole[0].is_complete:
            broken = self._whole[0].find_broken()
        else:
            broken = self._read_back()
        broken = broken or self._join(parts)
        if broken is not None:
            raise checksum_error(self.origin.location(self.source.path), *broken)

    def _join(self, parts: Sequence[Part]) -> tuple[Checksum, Checksum] | None:
        """Of parts that several processes have read: what they were read as, together."""
        promised = self._joinable
        known = [(value, part.size) for part in parts if (value := self._crc_in(part))]
        if promised is None or len(known) != len(parts):
            return None
        try:
            found = join_crcs(promised.algorithm, known)
        except ValueError as error:
            raise CheckpointInvalid("the checkpoint's checksums cannot be read") from error
        return None if found == promised else (promised, found)

    def _crc_in(self, part: Part) -> str | None:
        """The CRC of a part, if it is of the kind that the source tells now."""
        kind, _, value = (part.crc or "").partition(":")
        return value if self._joinable is not None and kind == self._joinable.algorithm else None

    def _read_back(self) -> tuple[Checksum, Checksum] | None:
        """Of parts that this process has not seen: what the target holds, where it can be read."""
        promised = self.source.checksum
        if not self.verify or promised is None or not isinstance(self.target, ReadingBack):
            return None
        digest = Digest([promised])
        for chunk in self.target.read_back():
            digest.update(chunk)
        return digest.find_broken()

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


def _tag_of(part: Part) -> tuple[str, int]:
    return part.etag, part.size


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
        # The query of a session's address lets anyone write to it: it is never shown.
        return upload.partition("?")[0]

    def _holds_parts(self, upload: str) -> bool:
        return self._target.is_left(upload)
