"""Sources of a move: each is deleted when its copy is there, if it is still the one copied."""

from __future__ import annotations

import threading
import unicodedata
from collections.abc import Sequence
from dataclasses import replace

from calque import faults
from calque.errors import CalqueError, InvalidInput, IsSameFile
from calque.operator.paths import collapse
from calque.transfer.model import Decision, KeyRange, Row
from calque.transfer.plan.free_space import Decided
from calque.transfer.plan.plan import Trees
from calque.transfer.plan.side import Side
from calque.transfer.report.rows import kept_row, predicted_row
from calque.transfer.run.removals.deletes import delete_listed, remove_emptied
from calque.transfer.run.removals.odd_names import OddNames
from calque.transfer.run.removals.two_trees import TwoTrees
from calque.transfer.run.removals.unreported_acts import find_moved
from calque.transfer.run.run_context import Shared
from calque.values import Metadata


def prove(decision: Decision) -> Decision:
    """A move deletes its source, so a target that only seems to be equal is made anew."""
    if decision.step != "keep" or decision.rule == "checksum":
        return decision
    target = decision.pair.target
    if decision.rule == "identity" and target is not None and target.etag is not None:
        return decision  # of a file only size and time are remembered, which others can set
    if decision.rule == "never":
        return replace(decision, step="skip", why="the target is there, and was not compared")
    return replace(decision, step="copy")


class Moves:
    """The sources of one pair of trees. Safe between threads."""

    def __init__(self, shared: Shared, trees: Trees, number: int) -> None:
        self._shared = shared
        self._trees = trees
        self._number = number
        self._lock = threading.Lock()
        self._emptied: set[str] = set()
        self._two_trees = TwoTrees(trees.source, trees.target)
        self._odd_names = OddNames(trees.source, trees.target)

    def delete(self, path: str, source: Metadata, row: Row) -> Row:
        """Delete a source whose copy has this row; where it cannot be, the row says why."""
        if self._shared.delete_later is not None:
            # A task of a cluster may have a twin, or be lost with all it has told: only who knows
            # that its copies count may delete what they were made of.
            self._shared.delete_later(path, source)
            return row
        try:
            self._refuse_alias(source.path, self._trees.target.key(row.target or path))
            self._two_trees.require()
            delete_listed(self._trees.source.service, source)
        except CalqueError as error:
            why = f"copied, but not deleted: {error.message}"
            return replace(row, outcome="failed", error=type(error).__name__, why=why, route=None)
        self.note_gone(path)
        return row

    def decide(self, decision: Decision) -> Decision:
        """What becomes of an object that is moved: not copied alone, but for its source to go."""
        decision = prove(decision)
        if decision.step not in ("copy", "keep") or self._shared.options.dry_run:
            return decision
        why = self._odd_names.objection(decision)
        if not why:
            return decision
        return replace(decision, step="refuse", rule="unfit", why=why, error=InvalidInput(why))

    def announce(self, page: Sequence[Decided], span: KeyRange) -> None:
        """A source that was moved is in no listing: whoever resumes knows it by this alone."""
        rows = [
            predicted_row(decision) if decision.step == "copy" else kept_row(decision)
            for _, decision in page
            if decision is not None and decision.step in ("copy", "keep")
        ]
        if rows and self._shared.journal is not None:
            self._shared.journal.announce(self._number, rows, span)

    def is_watched(self, path: str) -> bool:
        """Whether a source that is not there may have been moved since this run has begun. One that
        was named is told by whoever misses it."""
        return (self._number, path) in self._shared.watched and self._trees.source.only is None

    def find_late(self, path: str) -> Row | None:
        """The row of a source that an earlier process has moved by a request that came late."""
        watched = self._shared.watched.get((self._number, path))
        return None if watched is None else find_moved(self._trees, watched)

    def note_gone(self, path: str) -> None:
        """A source is not there any more; its folder may be empty now."""
        faults.point("tree.moved")
        folder = path.rpartition("/")[0]
        if folder:
            with self._lock:
                self._emptied.add(folder)

    def note_empty(self, folder: str) -> None:
        """A folder (``name/``) that was empty in the first place has been made at the target."""
        with self._lock:
            self._emptied.add(folder.rstrip("/"))

    def remove_emptied(self) -> None:
        """Remove folders that nothing is left in."""
        shared, source = self._shared, self._trees.source
        if shared.moved_before and shared.delete_later is None and not shared.stopping.is_set():
            self._emptied |= self._find_emptied_before()
        remove_emptied(source, self._emptied)

    def _find_emptied_before(self) -> set[str]:
        """Folders that an earlier process has emptied, and had no time to remove: they are at the
        target by what was in them. One that was empty and could not be kept there stays."""
        trees, found = self._trees, list[str]()
        if not trees.source.is_local or trees.source.only is not None:
            return set()

        def note(path: str, kind: str | CalqueError) -> None:
            if kind == "empty folder" and trees.takes_path(path):
                found.append(path)

        for _ in trees.source.entries(trees.listed, tell=note):
            pass
        return {path.rstrip("/") for path in found if _has_folder(trees.target, path)}

    def _refuse_alias(self, source: str, target: str) -> None:
        """Some servers collapse ``//`` or fold cases and unicode forms: two keys, one object."""
        ours, theirs = self._trees.source, self._trees.target
        if ours.is_local:
            return  # renamed, or of another file system
        names = (ours.service.identity(source).name, theirs.service.identity(target).name)
        if _fold(names[0]) == _fold(names[1]):
            raise IsSameFile(f"{source!r} and {target!r} may be one object to the server")


def _has_folder(side: Side, folder: str) -> bool:
    if side.is_local:
        return side.has_folder(folder)
    return replace(side, prefix=side.key(folder)).exists()


def _fold(key: str) -> str:
    """A key as the least careful of servers may see it."""
    return unicodedata.normalize("NFC", collapse(key)).casefold()
