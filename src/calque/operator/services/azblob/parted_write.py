"""A write of the caller's bytes in blocks, which another process can go on with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from calque.errors import CalqueError, CheckpointInvalid, InvalidInput, NotFound
from calque.operator.drivers.verbs import CommitConflict, Part
from calque.operator.services.azblob import blocks
from calque.operator.services.azblob.blocks import Block
from calque.operator.services.azblob.staging import Staging
from calque.operator.services.azblob.write import PIECE, Upload, put_block
from calque.values import ByteRange, Metadata, PartPlan

LIMITS = replace(blocks.LIMITS, most=10_000)
"""So few blocks that a checkpoint, which names each of them, stays small."""


@dataclass(frozen=True, slots=True)
class AzblobPartedWrite:
    """The verbs of an upload whose blocks are staged by the client.

    Nothing is opened: the upload is the id that its blocks bear, and exists with the first of them.
    """

    write: Upload

    @property
    def in_order(self) -> bool:
        return False

    @property
    def _location(self) -> str:
        return self.write.client.location(self.write.path)

    def _staging(self, upload: str) -> Staging:
        if not blocks.is_write(upload):
            raise CheckpointInvalid("the checkpoint is not one of blocks", hint="Copy anew.")
        return Staging(self.write.client, self.write.path, upload)

    def plan(self, size: int, wanted: int | None) -> PartPlan:
        try:
            return PartPlan.make(size, wanted or PIECE, LIMITS)
        except ValueError as error:
            raise InvalidInput(f"{self._location}: {error}") from error

    def initiate(self) -> str:
        # What the service would refuse with the commit is refused before a byte is sent.
        self.write.headers()
        return blocks.new_write()

    def put_part(self, upload: str, number: int, span: ByteRange, data: bytes) -> Part:
        block = Block(upload, number)
        try:
            put_block(self.write.client, self.write.path, block, data)
        except CalqueError as error:
            if (why := self._staging(upload).explain_refusal(error)) is not None:
                raise why from error
            raise
        return Part(number, block.id, len(data))

    def list_parts(
        self, upload: str, plan: PartPlan, known: Mapping[int, Part]
    ) -> Mapping[int, Part]:
        """The service's own list; NotFound where nothing is staged because it became the blob."""
        staging = self._staging(upload)
        staged = staging.list_staged()
        if not staged and staging.find_committed() is not None:
            raise NotFound(f"{self._location} is made of the blocks of the upload {upload}")
        return staged

    def is_left(self, upload: str) -> bool:
        """Blocks that a discard leaves stand beside a blob: the service collects them."""
        return False

    def complete(self, upload: str, parts: Sequence[Part]) -> Metadata:
        staging = self._staging(upload)
        # Just before the commit, which takes whatever blocks there are under these ids.
        held = staging.list_staged()
        if any(part.number not in held for part in parts):
            if (made := staging.find_committed(len(parts))) is not None:
                return made
            raise CommitConflict(f"staged blocks of {self._location} were thrown away")
        return staging.commit(len(parts), sum(part.size for part in parts), self.write.headers())

    def find_committed(self, upload: str, parts: Sequence[Part]) -> Metadata | None:
        return self._staging(upload).find_committed()

    def abort(self, upload: str) -> None:
        self._staging(upload).discard()

    def release(self) -> None:
        """Nothing is held here: the blocks are the service's."""
