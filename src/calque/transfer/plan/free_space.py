"""Room on a local target, held against what is planned before it is begun."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path

from calque.errors import ResourceExhausted
from calque.transfer.model import Decision, Pair
from calque.transfer.plan.plan import Trees
from calque.transfer.plan.side import Side
from calque.transfer.request.options import TreeOptions

_SMALL = 1 << 20
"""Holes are looked for in files that are larger."""
_BLOCK = 512
"""The unit of st_blocks, whatever the blocks of the file system are."""

Decided = tuple[Pair, Decision | None]


class FreeSpace:
    """What a file system had free when the run began, less what was planned since."""

    def __init__(self, trees: Trees, free: int, *, by_page: bool) -> None:
        self._source = trees.source
        self._target = trees.target
        self._free = free
        self._needed = 0
        self._by_page = by_page
        self._lock = threading.Lock()

    @classmethod
    def of(cls, trees: Trees, options: TreeOptions) -> FreeSpace | None:
        """None where it cannot be known: the target is no file system that tells it, or the source
        is on the same one, where files are renamed or may share their blocks."""
        if not trees.target.is_local or not options.space_check:
            return None
        there = _existing(trees.target)
        try:
            device = os.stat(there).st_dev
            if trees.source.is_local and os.stat(_existing(trees.source)).st_dev == device:
                return None
            told = os.statvfs(there)
        except OSError:
            return None
        if not told.f_blocks:
            return None  # some file systems of networks and of kernels tell nothing
        # To compare checksums files are read: their copies do not wait for a page of that.
        return cls(trees, told.f_bavail * told.f_frsize, by_page=options.compare != "checksum")

    def reserve(self, decided: Iterable[Decided]) -> Iterator[Decided]:
        """The same, once there is room for them: of a whole page before the first is begun."""
        if not self._by_page:
            for each in decided:
                self._take([each])
                yield each
            return
        page = list(decided)
        self._take(page)
        yield from page

    def _take(self, page: list[Decided]) -> None:
        needed = sum(self._growth(decision) for _, decision in page if decision is not None)
        with self._lock:
            self._needed += needed
            short = self._needed > self._free
        if short:
            raise ResourceExhausted(
                f"{self._target.location()} has {self._free} bytes free, and what was listed so "
                f"far needs {self._needed}",
                hint="It was told before the disk is full. Make room, or say --no-space-check "
                "where the file system packs or shares its blocks.",
            )

    def _growth(self, decision: Decision) -> int:
        """By how much a copy makes the target larger; what it replaces goes."""
        source, target = decision.pair.source, decision.pair.target
        if decision.step != "copy" or source is None:
            return 0
        size = source.size
        if self._source.is_local and size > _SMALL:
            size = min(size, _allocated(self._source, source.path, size))
        return size - (0 if target is None else target.size)


def _allocated(side: Side, path: str, size: int) -> int:
    """The bytes of a file that are no holes, which stay holes."""
    try:
        return os.stat(os.path.join(_root(side), path)).st_blocks * _BLOCK
    except (OSError, ValueError):
        return size


def _root(side: Side) -> str:
    return side.service.location("").removeprefix("file://")


def _existing(side: Side) -> Path:
    """The folder of a side, or the nearest above it that is there."""
    folder = Path(_root(side))
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder
