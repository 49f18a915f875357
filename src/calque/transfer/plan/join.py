"""Both sides as pairs, by path, in memory that does not grow: a merge of two ordered listings."""

from __future__ import annotations

from collections.abc import Iterator

from calque.transfer.model import Entries, Pair, sort_key


def join(source: Entries, target: Entries) -> Iterator[Pair]:
    """A pair for each path that either side has; both must come in the order of ``sort_key``."""
    ours, theirs = next(source, None), next(target, None)
    while ours is not None or theirs is not None:
        if theirs is None or (ours is not None and sort_key(ours[0]) < sort_key(theirs[0])):
            assert ours is not None
            yield Pair(ours[0], ours[1], None)
            ours = next(source, None)
        elif ours is None or sort_key(theirs[0]) < sort_key(ours[0]):
            yield Pair(theirs[0], None, theirs[1])
            theirs = next(target, None)
        else:
            yield Pair(ours[0], ours[1], theirs[1])
            ours, theirs = next(source, None), next(target, None)
