"""Large copies of a tree: their checkpoints are kept while they run, and found by a resume."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

from calque import faults
from calque.errors import CheckpointInvalid, Unsupported
from calque.operator.checkpoint import Checkpoint
from calque.operator.copier import Copier
from calque.operator.copy import resume_copy
from calque.operator.options import CopyOptions
from calque.operator.service import Service

if TYPE_CHECKING:
    from calque.transfer.jobs.journal import Journal

_KEEP_SECONDS = 2.0


class CopyKeeper:
    """The checkpoints of one tree's large copies, in the journal of its job."""

    def __init__(self, journal: Journal, tree: int) -> None:
        self._journal = journal
        self._tree = tree

    def resume(
        self, path: str, origin: Service, into: Service, options: CopyOptions
    ) -> Copier | None:
        """The copier of an earlier process, where it left a checkpoint that still holds."""
        left = self._journal.unfinished
        text = left.copies.pop((self._tree, path), "") if left is not None else ""
        if not text:
            return None
        with suppress(CheckpointInvalid, Unsupported):
            checkpoint = Checkpoint.from_json(text)
            return resume_copy(origin, into, checkpoint, options)
        return None

    def keep(self, path: str, checkpoint: Checkpoint) -> None:
        """Keep how far a copy is that others work on."""
        self._journal.keep_copy(self._tree, path, checkpoint.to_json())

    def saver(self, path: str, copier: Copier) -> Saver | None:
        """None for a copy that is begun anew if its process dies: a small one."""
        if not self._journal.keeps_copy(self._tree, path):
            return None
        return Saver(self._journal, self._tree, path, copier)


class Saver:
    """Keeps the checkpoint of one copy: after its first step, then every few seconds."""

    def __init__(self, journal: Journal, tree: int, path: str, copier: Copier) -> None:
        self._journal = journal
        self._tree = tree
        self._path = path
        self._copier = copier
        self._kept = float("-inf")

    def save_sometimes(self) -> None:
        """Called after each step."""
        now = time.monotonic()
        if now - self._kept < _KEEP_SECONDS:
            return
        try:
            checkpoint = self._copier.checkpoint()
        except Unsupported:
            self._kept = float("inf")  # of this service no copy survives its process
            return
        self._journal.keep_copy(self._tree, self._path, checkpoint.to_json())
        faults.point("copy.kept")
        self._kept = now
