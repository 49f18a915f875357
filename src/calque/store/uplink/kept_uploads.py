"""Sorted lists of uploads under way, kept for the pages that follow a first one.

The satellite lists in the order of encrypted names, so all have to be read before the first is
known. Nothing tells that uploads have begun or ended since, so a list is used for a while only, and
by those alone who say how old it may be.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime

MOST_UPLOADS = 100_000
"""Of all lists of a session together; a longer one is not kept."""


@dataclass(frozen=True, slots=True)
class PendingInfo:
    """An upload that is not committed: it can be gone on with, committed or aborted by its id."""

    bucket: str
    key: str
    upload_id: bytes
    begun: datetime


class KeptUploads:
    """Lists by bucket and prefix, the least used of which go first. Safe between threads."""

    def __init__(
        self, most: int = MOST_UPLOADS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._lists: OrderedDict[tuple[str, str], tuple[Sequence[PendingInfo], float]]
        self._lists = OrderedDict()

    def get(self, bucket: str, prefix: str, max_age: float) -> Sequence[PendingInfo] | None:
        """A list that is no older than that."""
        with self._lock:
            found, read_at = self._lists.get((bucket, prefix), (None, 0.0))
            if found is None or self._clock() - read_at > max_age:
                return None
            self._lists.move_to_end((bucket, prefix))
            return found

    def keep(self, bucket: str, prefix: str, uploads: Sequence[PendingInfo]) -> None:
        with self._lock:
            self._lists.pop((bucket, prefix), None)
            self._lists[bucket, prefix] = (uploads, self._clock())
            while sum(len(each) for each, _ in self._lists.values()) > self._most:
                self._lists.popitem(last=False)
