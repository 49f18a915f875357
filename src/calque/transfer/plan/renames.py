"""Objects that have another name at the source than at the target: found before any is copied.

Both trees are listed once before. What is new at the source and what the target is to lose are
sorted by size on disk; within a size checksums decide. Memory holds the pairs that were found.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from itertools import groupby

from calque.errors import CalqueError
from calque.transfer.model import Entries, Twin
from calque.transfer.plan.plan import Plan
from calque.transfer.plan.rules import checksums, hash_object
from calque.transfer.plan.side import Side, is_marker
from calque.transfer.plan.sort_on_disk import sort_on_disk
from calque.values import Metadata

_NEW, _GONE = "new", "gone"


class Renames:
    """The renames of one pair of trees, looked for when first asked for."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._lock = threading.Lock()
        self._found: dict[str, Twin] | None = None

    def twin(self, path: str) -> Twin | None:
        """The object of the target that a new path was before; None where there is none."""
        with self._lock:
            if self._found is None:
                self._found = dict(self._find())
        return self._found.get(path)

    def _find(self) -> Iterator[tuple[str, Twin]]:
        for _, group in groupby(sort_on_disk(self._by_size()), key=lambda each: each[0][:20]):
            several = [(key[20:], entry) for key, entry in group]
            new = [entry for side, entry in several if side.startswith(_NEW)]
            gone = [entry for side, entry in several if side.startswith(_GONE)]
            if new and gone:
                yield from self._match(new, gone)

    def _by_size(self) -> Entries:
        """What only one of the trees has, as far as filters take it."""
        trees = self._plan.trees
        for pair in Plan(trees, self._plan.options).pairs():
            entry = pair.source or pair.target
            # An empty object costs less to make than to look for.
            if (pair.source and pair.target) or entry is None or not entry.size:
                continue
            if is_marker(entry) or not trees.takes_path(pair.path):
                continue
            if trees.filters.takes_entry(entry):
                side = _NEW if pair.source else _GONE
                yield f"{entry.size:020d}{side}{pair.path}", entry

    def _match(self, new: list[Metadata], gone: list[Metadata]) -> Iterator[tuple[str, Twin]]:
        """New objects with those of the same checksum, the smallest name first."""
        source, target = self._plan.trees.source, self._plan.trees.target
        theirs = list(_sums(target, gone, _kinds(source, new)))
        ours = list(_sums(source, new, {kind for sums, _ in theirs for kind in sums}))
        used: set[str] = set()
        for sums, entry in ours:
            same = [
                other
                for known, other in theirs
                if other.path not in used and sums.items() & known.items()
            ]
            if not same:
                continue
            used.add(same[0].path)
            old = same[0].path[len(target.prefix) :]
            of = f", the smallest of {len(same)} names" if len(same) > 1 else ""
            path = entry.path[len(source.prefix) :]
            yield path, Twin(same[0], f"the target has it as {old!r}{of}")


def _kinds(side: Side, entries: Iterable[Metadata]) -> set[str]:
    return {kind for each in entries for kind in checksums(side.service.capability, each)}


def _sums(
    side: Side, entries: list[Metadata], wanted: set[str]
) -> Iterator[tuple[dict[str, str], Metadata]]:
    """Entries with their checksums: listed ones, or of a local file one that the other side has."""
    for entry in sorted(entries, key=lambda each: each.path):
        known = dict(checksums(side.service.capability, entry))
        try:
            if side.is_local:
                known |= hash_object(side.service, entry, wanted)
        except CalqueError:
            continue  # whoever copies it will say what is wrong with it
        yield known, entry
