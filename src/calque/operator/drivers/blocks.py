"""Azure's way: blocks staged from a source range, then one commit of their list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from calque.errors import CheckpointInvalid
from calque.operator.drivers.multipart import MultipartDriver
from calque.operator.drivers.parts_state import parts_of, plan_of, select_fitting
from calque.operator.drivers.verbs import BlockVerbs, Part
from calque.values import Backoff, ByteRange, Metadata, PartPlan

_LANDING = Backoff(first=0.1)
_NO_UPLOAD = ""
"""Blocks belong to their blob; there is no upload with an id of its own."""


@dataclass(frozen=True, slots=True)
class _AsUpload:
    """Blocks seen as the upload that the multipart driver knows."""

    blocks: BlockVerbs

    def initiate(self) -> str:
        return _NO_UPLOAD

    def copy_part(self, upload: str, number: int, span: ByteRange) -> Part:
        return self.blocks.stage(number, span)

    def list_parts(self, upload: str) -> Mapping[int, Part]:
        return self.blocks.list_staged()

    def complete(self, upload: str, parts: Sequence[Part]) -> Metadata:
        return self.blocks.commit(parts)

    def find_committed(self, upload: str, parts: Sequence[Part]) -> Metadata | None:
        return self.blocks.find_committed(parts)

    def abort(self, upload: str) -> None:
        self.blocks.discard()


class BlocksDriver(MultipartDriver):
    """Queue, order and commit as for parts; an abort discards what was staged.

    A service need not be able to discard blocks beside a blob that existed before: those it
    collects by itself, so blocks that stay after an abort are no error.
    """

    _name = "blocks"

    def __init__(self, verbs: BlockVerbs, plan: PartPlan, *, concurrent: int) -> None:
        super().__init__(_AsUpload(verbs), plan, concurrent=concurrent)
        self._blocks = verbs

    @classmethod
    def resume_blocks(
        cls, verbs: BlockVerbs, state: Mapping[str, Any], *, concurrent: int, size: int
    ) -> Self:
        """The driver of an earlier copy: the blocks that the server holds are done.

        Raises CheckpointInvalid where they are gone and have not become the target.
        """
        driver = cls(verbs, plan_of(state, size=size), concurrent=concurrent)
        known = parts_of(state)
        # The server is asked, not the checkpoint: blocks may have been staged after it was saved.
        held = select_fitting(driver._plan, verbs.list_staged())
        if held:
            driver._continue(_NO_UPLOAD, held)
            return driver
        driver._result = verbs.find_committed(list(known.values()))
        if driver._result is not None:
            driver._held_before = size
        elif known:
            raise CheckpointInvalid(
                "the staged blocks of the checkpoint are gone: discarded or collected",
                hint="Copy anew.",
            )
        return driver

    def _drop(self, upload: str) -> None:
        try:
            self._blocks.discard()
            if self._may_land:
                _LANDING.sleep(1)
            # A block that was in flight may have landed after the first discard.
            if self._blocks.list_staged():
                self._blocks.discard()
        except Exception as error:
            error.add_note("left behind: uncommitted blocks")
            raise
