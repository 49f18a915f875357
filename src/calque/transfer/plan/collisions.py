"""Paths that fall together where letters' cases do not count: found before any is written.

``Read.me`` and ``read.me`` may lie a million keys apart, and neither may overwrite the other. So
where the target does not tell cases apart both trees are listed once before, folded, and sorted on
disk; what is kept in memory are the paths that do collide.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from calque.transfer.model import Collision, Entries, sort_key
from calque.transfer.plan.plan import Trees
from calque.transfer.plan.side import Side
from calque.transfer.plan.sort_on_disk import sort_on_disk
from calque.transfer.request.options import TreeOptions
from calque.values import Metadata

_SOURCE, _TARGET = "source", "target"
_LOOKED_AT = 100
"""Names of a folder that are tried before it counts as one that tells cases apart."""


class Collisions:
    """The paths of one pair of trees that fall together, listed when first asked for."""

    def __init__(self, trees: Trees, options: TreeOptions) -> None:
        self._trees = trees
        self._lock = threading.Lock()
        self._renames = options.on_collision == "rename"
        self._found: dict[str, Collision] | None = None
        self._given: frozenset[str] = frozenset()

    @classmethod
    def of(cls, trees: Trees, options: TreeOptions) -> Collisions | None:
        """None where the target tells cases apart, and nobody asked for other care."""
        if not options.fold_case and not (trees.target.is_local and folds_case(trees.target)):
            return None
        return cls(trees, options)

    def find(self, path: str) -> Collision | None:
        """How a path of the source collides; None where it does not."""
        return self._all().get(path)

    def is_given(self, path: str) -> bool:
        """Whether a path of the target is the name that one of the source was given."""
        self._all()
        return path in self._given

    def _all(self) -> dict[str, Collision]:
        with self._lock:
            if self._found is None:
                found = dict(self._list())
                self._given = frozenset(each.name for each in found.values() if each.name)
                self._found = found
            return self._found

    def _list(self) -> Iterator[tuple[str, Collision]]:
        """Each path of the source that collides."""
        for _, group in groupby(sort_on_disk(self._folded()), key=lambda each: each[0]):
            # A path that both trees have is one; so is one that a listing shows twice.
            sides: dict[str, set[str]] = {_SOURCE: set(), _TARGET: set()}
            for _, entry in group:
                sides[entry.etag or _SOURCE].add(entry.path)
            ours, theirs = sides[_SOURCE], sides[_TARGET]
            if len(ours | theirs) > 1:
                yield from self._settle(ours, theirs)

    def _settle(self, ours: set[str], theirs: set[str]) -> Iterator[tuple[str, Collision]]:
        # What stands at the target keeps its name, first of all what the source does not have.
        first = min(theirs - ours or ours & theirs or ours)
        for path in sorted(ours):
            other = first if path != first else min((ours | theirs) - {path})
            why = f"it differs from {other!r} in the case of letters only"
            if not self._renames:
                yield path, Collision(why)
            elif path != first:
                name = give_name(path)
                yield path, Collision(f"written as {name!r}: {why}", name)

    def _folded(self) -> Entries:
        trees = self._trees
        for path, entry in trees.source.entries(trees.listed):
            if trees.takes_path(path) and trees.filters.takes_entry(entry):
                yield path.casefold(), Metadata(path=path, etag=_SOURCE)
        for path, _ in trees.target.entries(trees.listed):
            yield path.casefold(), Metadata(path=path, etag=_TARGET)


def give_name(path: str) -> str:
    """The name of a path that may not have its own: the same in every run, and in no order.

    The suffix comes from the path alone, so that the next run finds what this one has written.
    """
    return f"{path}~{hashlib.sha256(sort_key(path)).hexdigest()[:8]}"


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
