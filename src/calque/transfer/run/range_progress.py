"""How far a range was acted on, while its objects end in any order."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import nullcontext
from typing import TYPE_CHECKING, Protocol

from calque.transfer.model import Row

if TYPE_CHECKING:
    from calque.transfer.jobs.journal import Journal


class Marked(Protocol):
    """A range whose done mark moves on."""

    def mark_done(self, path: str) -> None: ...

    def finish(self) -> None: ...


class NoRange:
    """In place of a range, for paths that were named one by one."""

    def mark_done(self, path: str) -> None:
        """There is no mark to move."""

    def finish(self) -> None:
        """Nobody waits for it."""


class Frontier:
    """Moves the done mark of a range up to the last path before which nothing is unfinished.

    Rows are counted by the journal when the mark has passed them: what lies behind it is acted on
    again by whoever resumes.
    """

    def __init__(self, span: Marked, journal: Journal | None = None) -> None:
        self._span = span
        self._journal = journal
        self._lock = threading.Lock()
        self._order: deque[str] = deque()
        self._unfinished: set[str] = set()
        self._rows: dict[str, Row] = {}
        self._listed = False

    def begin(self, path: str) -> None:
        """A path, the next in the order of keys, is about to be acted on."""
        with self._lock:
            self._order.append(path)
            self._unfinished.add(path)

    def end(self, path: str, row: Row | None = None) -> None:
        """A path was acted on, and its row is written; without one somebody else keeps it."""
        with self._lock:
            self._unfinished.discard(path)
            if row is not None and self._journal is not None:
                self._rows[path] = row
            passed = []
            while self._order and self._order[0] not in self._unfinished:
                passed.append(self._order.popleft())
            if passed:
                self._pass(passed)
            self._finish()

    def _pass(self, passed: list[str]) -> None:
        journal = self._journal
        with nullcontext() if journal is None else journal.lock:
            self._span.mark_done(passed[-1])
            for path in passed:
                row = self._rows.pop(path, None)
                if row is not None and journal is not None:
                    journal.settle(row)

    def close(self) -> None:
        """The range was listed to its end; it is finished when the last of its paths is."""
        with self._lock:
            self._listed = True
            self._finish()

    def _finish(self) -> None:
        if self._listed and not self._order:
            self._listed = False
            self._span.finish()
