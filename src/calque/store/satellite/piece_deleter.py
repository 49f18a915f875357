"""Freed pieces deleted in a thread of their own: nobody's answer waits for what was replaced.

What waits here is in the queue of the database as well, from the transaction that freed it: killed,
the process leaves it to the next opening. Only a server has this thread; elsewhere pieces are
deleted before the call returns, since the process may end then.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from calque.store.metabase.model.records import FreedSegment

MOST_WAITING = 1000
"""Segments that wait at the most; whoever frees more deletes by itself, and so is slowed down."""

_log = logging.getLogger(__name__)


class PieceDeleter(threading.Thread):
    """Deletes what it is given, in the order in which it came."""

    def __init__(self, free: Callable[[Sequence[FreedSegment]], object]) -> None:
        super().__init__(name="calque-freed-pieces", daemon=True)
        self._free = free
        self._changed = threading.Condition()
        self._waiting: list[FreedSegment] = []
        self._is_over = False

    def take(self, freed: Sequence[FreedSegment]) -> bool:
        """Delete them soon; False when that is left to the caller."""
        with self._changed:
            if self._is_over or len(self._waiting) + len(freed) > MOST_WAITING:
                return False
            self._waiting.extend(freed)
            self._changed.notify()
            return True

    def stop(self) -> None:
        """Return when all that was taken has been tried."""
        with self._changed:
            self._is_over = True
            self._changed.notify()
        self.join()

    def run(self) -> None:
        while batch := self._next_batch():
            try:
                self._free(batch)
            except Exception:  # what is left is in the queue, and others are to come
                _log.exception("the pieces of %d segments wait", len(batch))

    def _next_batch(self) -> list[FreedSegment]:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_over)
            batch, self._waiting = self._waiting, []
            return batch
