"""How far a range was acted on, while its objects end in any order."""

from __future__ import annotations

import threading
from collections import deque

from calque.transfer.ranges import OpenRange


class Frontier:
    """Moves the done mark of a range up to the last path before which nothing is unfinished."""

    def __init__(self, span: OpenRange) -> None:
        self._span = span
        self._lock = threading.Lock()
        self._order: deque[str] = deque()
        self._unfinished: set[str] = set()
        self._listed = False

    def begin(self, path: str) -> None:
        """A path, the next in the order of keys, is about to be acted on."""
        with self._lock:
            self._order.append(path)
            self._unfinished.add(path)

    def end(self, path: str) -> None:
        """A path was acted on, and its row is written."""
        with self._lock:
            self._unfinished.discard(path)
            last = None
            while self._order and self._order[0] not in self._unfinished:
                last = self._order.popleft()
            if last is not None:
                self._span.mark_done(last)
            self._finish()

    def close(self) -> None:
        """The range was listed to its end; it is finished when the last of its paths is."""
        with self._lock:
            self._listed = True
            self._finish()

    def _finish(self) -> None:
        if self._listed and not self._order:
            self._listed = False
            self._span.finish()
