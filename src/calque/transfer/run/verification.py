"""A second look at what a run has copied: every target against a fresh listing.

A row says what the service answered when the object was written. Whether it is still there, by that
size and that etag, only a listing made afterwards can tell.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from calque.errors import NotFound
from calque.operator.service import Directories
from calque.transfer.model import Entries, Pair, Row
from calque.transfer.plan.join import join
from calque.transfer.plan.plan import Trees
from calque.transfer.plan.side import Side, in_key_order
from calque.transfer.plan.sort_on_disk import sort_on_disk
from calque.transfer.request.filters import NO_FILTERS
from calque.values import Metadata

_TOGETHER = 500
Claim = tuple[str, int, str | None]
"""A path, and the size and the etag that its target had when it was made."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the rows of one label went."""

    label: str
    trees: Sequence[Trees]


class Verification:
    """The claims of a run, on disk, and how they are held against the target.

    ``note`` is called by one thread at a time.
    """

    def __init__(self, trees: Sequence[Trees]) -> None:
        self._places = _places(trees)
        self._file = tempfile.TemporaryFile(prefix="calque-verify-")  # noqa: SIM115
        self._waiting: list[Claim] = []
        self.looked_at = 0

    def note(self, row: Row) -> None:
        """Take what the row of a copy claims."""
        if row.outcome != "copied":
            return
        size = row.size if row.target_size is None else row.target_size
        self._waiting.append((row.target or row.path, size or 0, row.target_etag))
        if len(self._waiting) >= _TOGETHER:
            self._write()

    def run(self, refuted: Callable[[str, str], None]) -> None:
        """List the targets anew; ``refuted`` gets path and reason of each that is not as told."""
        for place in self._places:
            for pair in self._pairs(place):
                if pair.source is None:
                    continue
                self.looked_at += 1
                why = _objection(place.trees[0].target, pair)
                if why is not None:
                    refuted(place.label + pair.path, why)

    def _pairs(self, place: Place) -> Iterator[Pair]:
        claimed = sort_on_disk(self._claims_of(place))
        first = next(claimed, None)
        if first is None:
            return  # nothing went there, so nothing is listed

        def first_of_each_path() -> Entries:
            last = first
            yield first
            for each in claimed:
                if each[0] != last[0]:  # two sources may have had one path
                    yield each
                last = each

        yield from join(first_of_each_path(), _listed(place))

    def _claims_of(self, place: Place) -> Entries:
        for path, size, etag in self._claims():
            if self._place_of(path) is place:
                path = path.removeprefix(place.label)
                yield path, Metadata(path=path, size=size, etag=etag)

    def _place_of(self, path: str) -> Place:
        """Longest labels come first, so that ``a/b`` is of ``a/`` before it is of none."""
        return next(each for each in self._places if path.startswith(each.label))

    def _claims(self) -> Iterator[Claim]:
        self._write()
        self._file.seek(0)
        while True:
            try:
                yield from pickle.load(self._file)  # our own, from a file without a name
            except EOFError:
                return

    def _write(self) -> None:
        pickle.dump(self._waiting, self._file, protocol=5)
        self._waiting = []

    def close(self) -> None:
        self._file.close()


def _places(trees: Sequence[Trees]) -> list[Place]:
    labels = sorted({each.label for each in trees}, key=len, reverse=True)
    return [Place(label, [each for each in trees if each.label == label]) for label in labels]


def _listed(place: Place) -> Entries:
    """What lies at a place now. Sources that share one have one target, and filters each."""
    first = place.trees[0]
    named = [path for each in place.trees for path in each.target.only or ()]
    alone = all(each.target.only is not None for each in place.trees)
    side = replace(first.target, only=tuple(dict.fromkeys(named)) if alone else None)
    filters = first.listed if len(place.trees) == 1 else NO_FILTERS
    return in_key_order(side, side.entries(filters))


def _objection(side: Side, pair: Pair) -> str | None:
    """Why a target is not what its row says; None where it is."""
    told, found = pair.source, pair.target
    assert told is not None
    if found is None:
        return None if _is_folder(side, pair.path) else "it is not there any more"
    if found.size != told.size:
        return f"it has {found.size} bytes, and had {told.size} when it was copied"
    if told.etag and found.etag and found.etag != told.etag:
        return "it is another object than was copied, by its etag"
    return None


def _is_folder(side: Side, path: str) -> bool:
    """Markers become folders of a file system, which no listing shows."""
    if not path.endswith("/") or not isinstance(side.service, Directories):
        return False
    try:
        return side.service.stat(side.key(path)).is_dir
    except NotFound:
        return False
