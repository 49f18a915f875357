"""What a listing finds that is no object: links, sockets, empty folders, names that are missing.

A walk looks at whole folders, ahead of what its range has claimed, and what is not claimed may
become another's. So each range keeps what it finds until the claim has passed it: one row for each.
"""

from __future__ import annotations

from collections.abc import Callable

from calque.errors import CalqueError, NotFound
from calque.operator.options import WriteOptions
from calque.operator.service import Directories, Service
from calque.transfer.model import Decision, KeyRange, Pair, Row
from calque.transfer.plan.plan import Trees
from calque.transfer.plan.side import Tell
from calque.transfer.report.rows import failed_row
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

    def wait(self) -> Waiting:
        """What one range finds, until it has claimed it."""
        return Waiting(self.tell)

    def tell(self, path: str, kind: str | CalqueError) -> None:
        """A row for it, unless an earlier process has written one."""
        if (self._number, path) in self._shared.known:
            return
        if isinstance(kind, NotFound) and self._was_moved(path):
            why = "gone from the source and at the target, as a move that was killed leaves it"
            self._add(Row(path=path, outcome="up to date", rule="new", why=why))
        elif isinstance(kind, CalqueError):
            self._fail(path, kind)
        elif kind == "empty folder":
            self._keep_folder(path)
        else:
            self._add(Row(path=path, outcome="skipped", rule="kind", why=kind))

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

    def _keep_folder(self, path: str) -> None:
        into, options = self._trees.target.service, self._shared.options
        if not isinstance(into, Directories) and not options.folders:
            self._add(Row(path=path, outcome="skipped", rule="kind", why="empty folder"))
        elif not options.dry_run:
            try:
                _make_folder(into, self._trees.target.key(path))
            except CalqueError as error:
                self._fail(path, error)
            else:
                if self._shared.moves:
                    self._note_moved(path)

    def _fail(self, path: str, error: CalqueError) -> None:
        pair = Pair(path, Metadata(path=path, is_dir=path.endswith("/")), None)
        self._add(failed_row(Decision(pair, "refuse", "kind"), error, 0.0))


class Waiting:
    """What one range has found so far and not told yet."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._found: list[tuple[str, str | CalqueError]] = []

    def add(self, path: str, kind: str | CalqueError) -> None:
        self._found.append((path, kind))

    def tell_up_to(self, path: str | None) -> None:
        """Tell what lies before or at a path, or all."""
        claimed = KeyRange(up_to=path)
        found, self._found = self._found, []
        for each in found:
            if claimed.holds(each[0]):
                self._tell(*each)
            else:
                self.add(*each)


def _make_folder(into: Service, key: str) -> None:
    if isinstance(into, Directories):
        into.create_dir(key)
    else:
        into.write(key, (), WriteOptions(size_hint=0))
