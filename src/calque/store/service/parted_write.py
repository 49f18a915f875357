"""A write of the caller's bytes in parts of the store, which another process can go on with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from calque.errors import CheckpointInvalid, InvalidInput, NotFound
from calque.operator.drivers.verbs import Part
from calque.operator.layers.chain import Call, Chain
from calque.operator.options import WriteOptions
from calque.store.project import Project
from calque.store.service.errors import map_errors
from calque.store.service.metadata import to_map, to_metadata
from calque.store.uplink.verbs.multipart import MultipartUpload
from calque.values import MIB, ByteRange, Metadata, PartLimits, PartPlan

PART = 16 * MIB
"""Larger than elsewhere: each part is a segment of its own, and few segments are cheaper."""
LIMITS = PartLimits(smallest=1, largest=2**62, most=10_000)


@dataclass(slots=True)
class StorePartedWrite:
    """The verbs of an upload whose parts are sent by the client.

    Each part bears the id of its upload, so that an object is known to be made of them.
    """

    project: Project
    bucket: str
    key: str
    path: str
    location: str
    options: WriteOptions
    chain: Chain
    _upload: MultipartUpload | None = field(default=None, repr=False)

    @property
    def in_order(self) -> bool:
        return False

    def plan(self, size: int, wanted: int | None) -> PartPlan:
        try:
            return PartPlan.make(size, wanted or PART, LIMITS)
        except ValueError as error:
            raise InvalidInput(f"{self.location}: {error}") from error

    def initiate(self) -> str:
        stored = to_map(self.options)

        def begin(_: Call) -> MultipartUpload:
            return self.project.begin_multipart(self.bucket, self.key, metadata=stored)

        self._upload = self.chain.run(Call("initiate", self.path, idempotent=False), begin)
        return self._upload.id.hex()

    def _resume(self, upload: str) -> MultipartUpload:
        """The upload of that id; NotFound where it is committed, aborted or expired."""
        if self._upload is None or self._upload.id.hex() != upload:
            try:
                number = bytes.fromhex(upload)
            except ValueError as error:
                raise CheckpointInvalid("the checkpoint names no upload of the store") from error
            self._upload = self.project.resume_multipart(self.bucket, self.key, number)
        return self._upload

    def put_part(self, upload: str, number: int, span: ByteRange, data: bytes) -> Part:
        def put(_: Call) -> int:
            return self._resume(upload).upload_part(number, data, etag=upload)

        size = self.chain.run(Call("write_part", self.path, slow=True), put)
        return Part(number, upload, size)

    def list_parts(
        self, upload: str, plan: PartPlan, known: Mapping[int, Part]
    ) -> Mapping[int, Part]:
        """The satellite's own list."""
        call = Call("list_parts", self.path)
        held = self.chain.run(call, lambda _: self._resume(upload).parts())
        return {part.number: Part(part.number, part.etag, part.size) for part in held}

    def is_left(self, upload: str) -> bool:
        return False

    def complete(self, upload: str, parts: Sequence[Part]) -> Metadata:
        options, numbers = self.options, [part.number for part in parts]

        def commit(_: Call) -> Metadata:
            made = self._resume(upload).commit(
                parts=numbers, if_not_exists=options.if_not_exists, if_match=options.if_match
            )
            return to_metadata(made, self.path)

        with map_errors(self.location):
            return self.chain.run(Call("commit", self.path, idempotent=False, slow=True), commit)

    def find_committed(self, upload: str, parts: Sequence[Part]) -> Metadata | None:
        """The object, if all of its parts bear the id of this upload."""
        try:
            held = self.project.list_parts(self.bucket, self.key)
            made = self.project.stat(self.bucket, self.key)
        except NotFound:
            return None
        ours = bool(held) and all(part.etag == upload for part in held)
        return to_metadata(made, self.path) if ours else None

    def abort(self, upload: str) -> None:
        call = Call("abort", self.path)
        with suppress(NotFound):
            self.chain.run(call, lambda _: self._resume(upload).abort())

    def release(self) -> None:
        """Nothing is held here: the upload is the satellite's."""
