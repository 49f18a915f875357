"""Paths that fall together where letters' cases do not count: found before any is written.

``Read.me`` and ``read.me`` may lie a million keys apart, and neither may overwrite the other. So
where the target does not tell cases apart both trees are listed once before, folded, and sorted on
disk; what is kept in memory are the paths that do collide.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from calque.transfer.model import Entries
from calque.transfer.plan.plan import Trees
from calque.transfer.plan.side import Side
from calque.transfer.plan.sort_on_disk import sort_on_disk
from calque.transfer.request.options import TreeOptions
from calque.values import Metadata

_LOOKED_AT = 100
"""Names of a folder that are tried before it counts as one that tells cases apart."""


class Collisions:
    """The paths of one pair of trees that fall together, listed when first asked for."""

    def __init__(self, trees: Trees) -> None:
        self._trees = trees
        self._lock = threading.Lock()
        self._found: dict[str, str] | None = None

    @classmethod
    def of(cls, trees: Trees, options: TreeOptions) -> Collisions | None:
        """None where the target tells cases apart, and nobody asked for other care."""
        if not options.fold_case and not (trees.target.is_local and folds_case(trees.target)):
            return None
        return cls(trees)

    def objection(self, path: str) -> str | None:
        """Why a path of the source may not be written; None where it may."""
        with self._lock:
            if self._found is None:
                self._found = dict(self._find())
        other = self._found.get(path)
        return None if other is None else f"it differs from {other!r} in the case of letters only"

    def _find(self) -> Iterator[tuple[str, str]]:
        """Each path of the source that collides, with one that it collides with."""
        for _, group in groupby(sort_on_disk(self._folded()), key=lambda each: each[0]):
            # A path that both trees have is one; so is one that a listing shows twice.
            paths = sorted({entry.path for _, entry in group})
            if len(paths) > 1:
                yield from ((path, paths[path == paths[0]]) for path in paths)

    def _folded(self) -> Entries:
        trees = self._trees
        for path, entry in trees.source.entries(trees.listed):
            if trees.takes_path(path) and trees.filters.takes_entry(entry):
                yield path.casefold(), Metadata(path=path)
        for path, _ in trees.target.entries(trees.listed):
            yield path.casefold(), Metadata(path=path)


def folds_case(side: Side) -> bool:
    """Whether the folder of a side finds its names by letters of another case, too.

    Nothing is written: names that are there are looked for by their other case. A folder that is
    not there yet will be as the one above it is.
    """
    folder = Path(side.service.location("").removeprefix("file://"))
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    while True:
        told = _folds_names(folder)
        if told is not None or folder == folder.parent or os.path.ismount(folder):
            return bool(told)
        folder = folder.parent


def _folds_names(folder: Path) -> bool | None:
    """Whether one folder does so; None where it has no name with letters."""
    tried = 0
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                other = entry.name.swapcase()
                if other == entry.name or other.swapcase() != entry.name:
                    continue
                tried += 1
                if tried > _LOOKED_AT:
                    break
                # Two names of one file, listed both, are links and prove nothing.
                if not os.path.lexists(folder / other):
                    return False
                if other not in os.listdir(folder):
                    return True
    except OSError:
        return None
    return None if not tried else False
