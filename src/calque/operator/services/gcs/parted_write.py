"""A write of the caller's bytes into a resumable session, which another process can go on with.

A session takes bytes in order and becomes the object with its last one. So parts follow each other,
and the last is held back until the commit. Each part keeps the checksum of everything up to its
end: whoever goes on can still tell the service what the whole must be.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

import google_crc32c

from calque.errors import CheckpointInvalid, InvalidInput, NotFound, Unexpected
from calque.operator.drivers.verbs import Part
from calque.operator.services.gcs.resource import metadata_of
from calque.operator.services.gcs.write import PIECE, Piece, Upload, base64_of
from calque.values import MIB, ByteRange, Metadata, PartLimits, PartPlan

QUANTUM = MIB // 4
"""Sessions count in these: every part but the last is a multiple."""
LIMITS = PartLimits(smallest=QUANTUM, largest=5 * 1024 * 1024 * MIB, most=10_000)


@dataclass(slots=True)
class GcsPartedWrite:
    """The verbs of a session that is filled part by part."""

    write: Upload
    _digest: int = 0
    """CRC32C of all that was put so far."""
    _held: int = 0
    """Bytes that the session held when it was taken up again."""
    _last: Piece | None = None

    @property
    def in_order(self) -> bool:
        return True

    def plan(self, size: int, wanted: int | None) -> PartPlan:
        try:
            part = PartPlan.make(size, wanted or PIECE, LIMITS).part_size
        except ValueError as error:
            raise InvalidInput(f"{self.write.location}: {error}") from error
        return PartPlan(size, -(-part // QUANTUM) * QUANTUM)

    def initiate(self) -> str:
        return self.write.open_session()

    def put_part(self, upload: str, number: int, span: ByteRange, data: bytes) -> Part:
        digest, end = google_crc32c.extend(self._digest, data), span.offset + len(data)
        size = self.write.options.size_hint
        piece = Piece(
            self.write,
            upload,
            span.offset,
            data,
            total=size if end == size else None,
            digest=base64_of(digest),
            # What was sent after the checkpoint was made is there already, and only hashed.
            held=min(self._held, end),
        )
        if piece.total is None:
            piece.send()
        else:
            self._last = piece
        self._digest = digest
        return Part(number, str(end), len(data), base64_of(digest))

    def list_parts(
        self, upload: str, plan: PartPlan, known: Mapping[int, Part]
    ) -> Mapping[int, Part]:
        """Known parts that the session holds. The last is never among them: with it all is over."""
        self._held = self._ask(upload)
        held: dict[int, Part] = {}
        for number in range(1, plan.count):
            part, span = known.get(number), plan.range_of(number)
            if part is None or part.checksum is None or part.size != span.length:
                break
            if span.offset + part.size > self._held:
                break
            held[number] = part
        if held:
            self._digest = _digest_of(held[len(held)])
        return held

    def _ask(self, upload: str) -> int:
        refuse_foreign(upload)
        held = self.write.ask_session(upload)
        if isinstance(held, int):
            return held
        raise NotFound(f"the session of {self.write.location} is over: it has made an object")

    def is_left(self, upload: str) -> bool:
        return False

    def complete(self, upload: str, parts: Sequence[Part]) -> Metadata:
        if self._last is None:
            raise Unexpected(f"the last part of {self.write.location} was never given")
        return self.write.read_made(self._last.send(), self._last.digest)

    def find_committed(self, upload: str, parts: Sequence[Part]) -> Metadata | None:
        """The object, where the session says that it has made one."""
        refuse_foreign(upload)
        try:
            made = self.write.ask_session(upload)
        except NotFound:
            return None
        if isinstance(made, int):
            return None
        found = metadata_of(made, self.write.path)
        return found if found.size == self.write.options.size_hint else None

    def abort(self, upload: str) -> None:
        self.write.cancel_session(upload)

    def release(self) -> None:
        """Nothing is held here: the session is the service's."""


def refuse_foreign(session: str) -> None:
    """A checkpoint may have been written by hand: requests with our credentials go to no other
    place than sessions of uploads."""
    parts = urlsplit(session)
    if parts.netloc or not parts.path.startswith("/upload/") or "upload_id=" not in parts.query:
        raise CheckpointInvalid("the checkpoint names no upload session", hint="Copy anew.")


def _digest_of(part: Part) -> int:
    try:
        return int.from_bytes(base64.b64decode(part.checksum or "", validate=True), "big")
    except ValueError as error:
        raise CheckpointInvalid("the checkpoint's checksums cannot be read") from error
