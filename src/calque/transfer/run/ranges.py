"""Ranges of keys: who works on which, and how one that is idle takes half of what another has left.

Ranges cover the key space without gap or overlap at every moment: they begin so, and a cut makes
two out of one. A worker *claims* paths before it acts on them, and a cut never falls before what
was claimed, so that no path is worked on twice and none is left out.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence

from calque.errors import InvalidInput
from calque.transfer.model import EVERYTHING, KeyRange, sort_key
from calque.transfer.plan.split_points import SeenKeys, find_border

_UNSEEN = 3
"""Cuts of one range of which nothing was seen yet. More would fall where nothing is known."""


def cut(whole: KeyRange, border: str) -> tuple[KeyRange, KeyRange]:
    """Two ranges out of one: up to the border with it, and what is behind."""
    inside = sort_key(border) > sort_key(whole.after) and (
        whole.up_to is None or sort_key(border) < sort_key(whole.up_to)
    )
    if not inside:
        raise InvalidInput(f"{border!r} does not lie within {whole}")
    return KeyRange(whole.after, border), KeyRange(border, whole.up_to)


def cover(borders: Iterable[str], within: KeyRange = EVERYTHING) -> list[KeyRange]:
    """The ranges between borders, in order: each key of ``within`` lies in exactly one."""
    found = []
    rest = within
    for border in sorted({border for border in borders if border}, key=sort_key):
        if rest.holds(border) and border != rest.up_to:
            first, rest = cut(rest, border)
            found.append(first)
    return [*found, rest]


class OpenRange:
    """A range that one worker is at. Its end may come nearer while it works."""

    def __init__(self, pool: RangePool, number: int, span: KeyRange, origin: OpenRange | None):
        self._pool = pool
        self._origin = origin
        self.number = number
        self.after = span.after
        """Everything up to here was claimed."""
        self.done = span.after
        """Everything up to here was acted on, so that a resume begins behind it."""
        self.up_to = span.up_to
        self.is_listed = False
        self._first = ""
        self._unseen = 0

    @property
    def span(self) -> KeyRange:
        """What is left of it to be claimed."""
        return KeyRange(self.after, self.up_to)

    @property
    def unfinished(self) -> KeyRange:
        """What is left of it to be acted on."""
        return KeyRange(self.done, self.up_to)

    def claim(self, paths: Sequence[str]) -> int:
        """How many of the next paths are this worker's; fewer than given: its range ends there."""
        return self._pool.claim(self, paths)

    def mark_done(self, path: str) -> None:
        """Everything up to this path was acted on."""
        self._pool.mark_done(self, path)

    def seal(self) -> str | None:
        """It was listed to its end, which is returned: nobody cuts it while its copies are under
        way."""
        return self._pool.seal(self)

    def finish(self) -> None:
        """There is nothing left of it."""
        self._pool.finish(self)


class RangePool:
    """The ranges of one run, shared by its workers.

    ``splits``: whether idle workers cut others' ranges; the pages that they claim say where.
    """

    def __init__(self, ranges: Iterable[KeyRange] = (EVERYTHING,), *, splits: bool = True) -> None:
        self._changed = threading.Condition()
        self._waiting: list[tuple[KeyRange, OpenRange | None]] = [(each, None) for each in ranges]
        self._waiting.reverse()
        self._open: dict[int, OpenRange] = {}
        self._seen = SeenKeys()
        self._splits = splits
        self._idle = 0
        self._numbers = 0
        self._stopped = False

    def take(self) -> OpenRange | None:
        """A range to work on; waits while others may have one to share. None: all is over."""
        with self._changed:
            self._idle += 1
            try:
                while not self._stopped:
                    if self._waiting or self._cut_largest():
                        return self._begin(*self._waiting.pop())
                    if not self._open:
                        self._changed.notify_all()
                        return None
                    self._changed.wait()
                return None
            finally:
                self._idle -= 1

    def __iter__(self) -> Iterator[OpenRange]:
        """Ranges for one worker, until all is over."""
        while (found := self.take()) is not None:
            yield found

    def stop(self) -> None:
        """Hand out nothing more; ranges that are open stay unfinished."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def forbid_splits(self) -> None:
        """From now on ranges are worked on as they are: the server does not keep borders."""
        with self._changed:
            self._splits = False

    @property
    def is_listed(self) -> bool:
        """Whether every range was listed to its end; its copies may be under way."""
        with self._changed:
            return not self._waiting and all(each.is_listed for each in self._open.values())

    def unfinished(self) -> list[KeyRange]:
        """What is left to be acted on, in order: what a journal keeps."""
        with self._changed:
            left = [each.unfinished for each in self._open.values()]
            left += [each for each, _ in self._waiting]
        return sorted(left, key=lambda each: sort_key(each.after))

    def cut_unfinished(self, pieces: int) -> list[KeyRange]:
        """:meth:`unfinished`, each range in up to so many pieces, as the claimed pages say.

        Each cut takes half of what is left, so the largest comes first.
        """
        with self._changed:
            left = [each for each, _ in self._waiting]
            for mine in self._open.values():
                rest = mine.unfinished
                for _ in range(pieces - 1):
                    border = mine._first and find_border(
                        self._seen, mine._first, mine.after, rest.up_to
                    )
                    if not border:
                        break
                    left.append(KeyRange(border.key, rest.up_to))
                    rest = KeyRange(rest.after, border.key)
                left.append(rest)
        return left

    def claim(self, mine: OpenRange, paths: Sequence[str]) -> int:
        """See :meth:`OpenRange.claim`."""
        with self._changed:
            count = _count_up_to(paths, mine.up_to)
            if count:
                mine.after, mine._first = paths[count - 1], paths[0]
                self._seen.add(paths[:count])
            self._settle_origin(mine)
            if self._idle:
                self._changed.notify_all()
            return count

    def seal(self, mine: OpenRange) -> str | None:
        """See :meth:`OpenRange.seal`."""
        with self._changed:
            mine.is_listed = True
            return mine.up_to

    def mark_done(self, mine: OpenRange, path: str) -> None:
        """See :meth:`OpenRange.mark_done`."""
        with self._changed:
            mine.done = path

    def finish(self, mine: OpenRange) -> None:
        """See :meth:`OpenRange.finish`."""
        with self._changed:
            self._settle_origin(mine)
            del self._open[mine.number]
            self._changed.notify_all()

    def _begin(self, span: KeyRange, origin: OpenRange | None) -> OpenRange:
        self._numbers += 1
        begun = OpenRange(self, self._numbers, span, origin)
        self._open[begun.number] = begun
        return begun

    def _settle_origin(self, mine: OpenRange) -> None:
        if mine._origin is not None:
            mine._origin._unseen -= 1
            mine._origin = None

    def _cut_largest(self) -> bool:
        """Cut the range that is thought to have most left; False where none is worth it."""
        if not self._splits:
            return False
        best, most = None, 0.0
        for each in self._open.values():
            if each.is_listed or each._unseen >= _UNSEEN or not each._first:
                continue
            border = find_border(self._seen, each._first, each.after, each.up_to)
            if border is not None and border.pages_left > most:
                best, most = (each, border.key), border.pages_left
        if best is None:
            return False
        mine, key = best
        self._waiting.append((KeyRange(key, mine.up_to), mine))
        mine.up_to = key
        mine._unseen += 1
        return True


def _count_up_to(paths: Sequence[str], up_to: str | None) -> int:
    if up_to is None or not paths:
        return len(paths)
    end = sort_key(up_to)
    if sort_key(paths[-1]) <= end:
        return len(paths)
    return next(place for place, path in enumerate(paths) if sort_key(path) > end)
