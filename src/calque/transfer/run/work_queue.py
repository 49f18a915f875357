"""Copies that wait for a worker: large ones first, the largest first of all."""

from __future__ import annotations

import heapq
import threading
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class WorkQueue(Generic[T]):
    """A bounded queue: whoever lists waits while the workers have enough to do."""

    def __init__(self, most: int) -> None:
        self._most = most
        lock = threading.Lock()
        self._work = threading.Condition(lock)
        self._room = threading.Condition(lock)
        self._small: deque[T] = deque()
        self._large: list[tuple[int, int, T]] = []
        self._number = 0
        self._closed = False

    def put(self, work: T, *, size: int, large: bool) -> bool:
        """Add work, waiting for room; False where the queue was closed meanwhile."""
        with self._room:
            # A large one never waits for room: it would begin late, and they are few.
            self._room.wait_for(lambda: self._closed or large or len(self._small) < self._most)
            if self._closed:
                return False
            if large:
                self._number += 1
                heapq.heappush(self._large, (-size, self._number, work))
            else:
                self._small.append(work)
            self._work.notify()
            return True

    @property
    def is_waiting(self) -> bool:
        """Whether there is work that nobody has taken."""
        return bool(self._small or self._large)

    def take(self) -> T | None:
        """The next work; waits for some. None once it is closed and empty."""
        with self._work:
            self._work.wait_for(lambda: self._small or self._large or self._closed)
            if self._large:
                return heapq.heappop(self._large)[2]
            if not self._small:
                return None
            work = self._small.popleft()
            # Not at each one: whoever lists is woken to fill half of it at once.
            if len(self._small) == self._most // 2:
                self._room.notify_all()
            return work

    def close(self) -> None:
        """No more work comes; what waits is still given out."""
        with self._work:
            self._closed = True
            self._work.notify_all()
            self._room.notify_all()

    def drop(self) -> list[T]:
        """Close it, and give back what nobody has begun."""
        self.close()
        with self._work:
            left = [*(work for _, _, work in self._large), *self._small]
            self._large.clear()
            self._small.clear()
            return left
