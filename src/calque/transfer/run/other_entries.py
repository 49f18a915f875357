"""What a listing finds that is no object: links, sockets, empty folders, names that are missing.

A walk looks at whole folders, ahead of what its range has claimed, and what is not claimed may
become another's. So each range keeps what it finds until it acts on what comes behind that in the
order of keys: one row for each, which counts with those of the objects around it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from calque.errors import CalqueError, NotFound
from calque.operator.options import WriteOptions
from calque.operator.service import Directories, Service
from calque.transfer.model import Decision, Pair, Row, sort_key
from calque.transfer.plan.plan import Trees
from calque.transfer.report.rows import failed_row
from calque.transfer.run.range_progress import Frontier
from calque.transfer.run.run_context import Shared
from calque.values import Metadata


class OtherEntries:
    """Tells what is no object of one tree, and keeps empty folders."""

    def __init__(
        self,
        shared: Shared,
        trees: Trees,
        number: int,
        add: Callable[[Row], Row],
        note_moved: Callable[[str], None],
    ) -> None:
        """``note_moved`` gets empty folders that a move has made at its target."""
        self._note_moved = note_moved
        self._shared = shared
        self._trees = trees
        self._number = number
        self._add = add

    def wait(self, frontier: Frontier) -> Waiting:
        """What one range finds, until it comes to it."""
        return Waiting(self.tell, frontier)

    def tell(self, path: str, kind: str | CalqueError) -> Row | None:
        """A row for it, unless it needs none, or an earlier process has written one."""
        if (self._number, path) in self._shared.known:
            return None
        if isinstance(kind, NotFound) and self._was_moved(path):
            why = "gone from the source and at the target, as a move that was killed leaves it"
            return self._add(Row(path=path, outcome="up to date", rule="new", why=why))
        if isinstance(kind, CalqueError):
            return self._fail(path, kind)
        if kind == "empty folder":
            return self._keep_folder(path)
        return self._add(Row(path=path, outcome="skipped", rule="kind", why=kind))

    def _was_moved(self, path: str) -> bool:
        """Whether a path that is named and missing was moved by a process that died right after."""
        target = self._trees.target
        if not self._shared.moved_before:
            return False
        try:
            target.service.stat(target.key(path))
        except CalqueError:
            return False
        return True

    def _keep_folder(self, path: str) -> Row | None:
        into, options = self._trees.target.service, self._shared.options
        if not isinstance(into, Directories) and not options.folders:
            return self._add(Row(path=path, outcome="skipped", rule="kind", why="empty folder"))
        if options.dry_run:
            return None
        try:
            _make_folder(into, self._trees.target.key(path))
        except CalqueError as error:
            return self._fail(path, error)
        if self._shared.moves:
            self._note_moved(path)
        return None

    def _fail(self, path: str, error: CalqueError) -> Row:
        pair = Pair(path, Metadata(path=path, is_dir=path.endswith("/")), None)
        return self._add(failed_row(Decision(pair, "refuse", "kind"), error, 0.0))


class Waiting:
    """What one range has found so far and not told yet."""

    def __init__(
        self, tell: Callable[[str, str | CalqueError], Row | None], frontier: Frontier
    ) -> None:
        self._tell = tell
        self._frontier = frontier
        self._found: list[tuple[bytes, int, str, str | CalqueError]] = []
        self._number = 0

    def add(self, path: str, kind: str | CalqueError) -> None:
        self._number += 1
        heapq.heappush(self._found, (sort_key(path), self._number, path, kind))

    def tell_up_to(self, path: str | None) -> None:
        """Tell what lies before or at a path, or all. What lies behind it is not acted on yet."""
        if not self._found:
            return
        end = None if path is None else sort_key(path)
        while self._found and (end is None or self._found[0][0] <= end):
            _, _, found, kind = heapq.heappop(self._found)
            self._frontier.begin(found)
            self._frontier.end(found, self._tell(found, kind))


def _make_folder(into: Service, key: str) -> None:
    if isinstance(into, Directories):
        into.create_dir(key)
    else:
        into.write(key, (), WriteOptions(size_hint=0))
