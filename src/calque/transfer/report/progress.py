"""How far a run is, for whoever shows it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field


@dataclass(slots=True)
class TreeProgress:
    """Counts that only grow, read at any moment from any thread."""

    listed: int = 0
    """Objects of the source that were listed so far."""
    listing: bool = True
    """Whether there may be more: until it is False totals are not known."""
    to_copy: int = 0
    bytes_to_copy: int = 0
    ended: int = 0
    """Copies that have ended, well or not."""
    bytes_moved: int = 0
    to_delete: int = 0
    deleted: int = 0
    """Deletes that have ended, well or not."""
    phase: str = "copying"
    trees: int = 1
    """How many there are, one listed after the other."""
    showing: threading.Lock = field(default_factory=threading.Lock, repr=False)
    """Held while the progress is told, and while a question stands in its place: a line that is
    renewed would be written over it."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def end_listing(self, tree: int) -> None:
        """A tree, of trees counted from 0, was listed to its end."""
        self.listing = self.listing and tree < self.trees - 1

    def add_listed(self) -> None:
        with self._lock:
            self.listed += 1

    def add_copy(self, size: int) -> None:
        with self._lock:
            self.to_copy += 1
            self.bytes_to_copy += size

    def add_moved(self, count: int) -> None:
        with self._lock:
            self.bytes_moved += count

    def add_ended(self) -> None:
        with self._lock:
            self.ended += 1

    def add_deleted(self) -> None:
        with self._lock:
            self.deleted += 1
