"""How fast a project may call."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from calque.errors import RateLimited


class RateLimit:
    """A token bucket for each project, holding at most one second's calls."""

    def __init__(
        self, calls_per_second: float | None, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate = calls_per_second
        self._clock = clock
        self._lock = threading.Lock()
        self._left: dict[bytes, tuple[float, float]] = {}

    def take(self, project_id: bytes) -> None:
        """Count one call, or ``RateLimited`` with the time to wait."""
        if self._rate is None:
            return
        now = self._clock()
        size = max(self._rate, 1.0)
        with self._lock:
            left, seen = self._left.get(project_id, (size, now))
            left = min(size, left + (now - seen) * self._rate)
            if left < 1.0:
                # Refused calls take no token, or a busy client would never get through.
                self._left[project_id] = (left, now)
                raise RateLimited(
                    f"the project calls more than {self._rate:g} times a second",
                    retry_after=(1.0 - left) / self._rate,
                )
            self._left[project_id] = (left - 1.0, now)
