"""Pace: so many requests a second, fewer while the server asks for that, then more again.

A server that answers "slow down" means all who ask it, not only the request it refused. So the
first such answer halves the rate of every request that carries this pace; from then on the rate
grows by a little with each that succeeds, up to the bound, if there is one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, TypeVar

from calque.errors import InvalidInput, RateLimited
from calque.operator.http.waiting_time import SLICE
from calque.operator.layers.chain import Call
from calque.operator.layers.clock import SYSTEM, Clock

T = TypeVar("T")

_LOWEST = 1.0
_GROWTH = 10.0
"""Requests a second that a second of successes adds."""
_APART = 0.5
"""Seconds between two cuts: answers to requests that left before a cut say nothing of it."""
_CALM = 60.0
"""Seconds without a refusal after which a rate that nobody has asked for is lifted."""


class Pace:
    """The rate of requests among all operators that carry this same pace. ``most`` bounds it."""

    def __init__(self, most: float | None = None, *, clock: Clock = SYSTEM) -> None:
        if most is not None and most <= 0:
            raise InvalidInput(f"a rate of requests must be above 0, not {most}")
        self.most = most
        self._clock = clock
        self._lock = threading.Lock()
        self._rate = most
        self._next = 0.0
        self._cut_at = float("-inf")
        self._second = 0
        self._now_counted = self._counted = 0

    @property
    def rate(self) -> float | None:
        """Requests a second as they are allowed now; None is no bound."""
        return self._rate

    def __call__(self, call: Call, proceed: Callable[[Call], T]) -> T:
        wait = self._reserve()
        if wait > 0:
            self._clock.sleep(wait)
        try:
            result = proceed(call)
        except RateLimited:
            self._slow_down()
            raise
        self._grow()
        return result

    def _reserve(self) -> float:
        """Take the next turn; how long it is until then."""
        with self._lock:
            now = self._clock.now()
            self._count(now)
            if self._rate is None:
                return 0.0
            turn = max(now, self._next)
            self._next = turn + 1 / self._rate
            return turn - now

    def _count(self, now: float) -> None:
        if int(now) != self._second:
            whole = int(now) == self._second + 1
            self._counted = self._now_counted if whole else 0
            self._second, self._now_counted = int(now), 0
        self._now_counted += 1

    def _slow_down(self) -> None:
        with self._lock:
            now = self._clock.now()
            if now - self._cut_at < _APART:
                return
            self._cut_at = now
            seen = float(max(self._counted, self._now_counted))
            self._rate = max(_LOWEST, (self._rate or seen) / 2)
            self._next = max(self._next, now + 1 / self._rate)

    def _grow(self) -> None:
        with self._lock:
            rate = self._rate
            if rate is None or rate == self.most:
                return
            calm = self._clock.now() - self._cut_at > _CALM
            if self.most is None:
                self._rate = None if calm else rate + _GROWTH / rate
            else:
                self._rate = min(self.most, rate + _GROWTH / rate)

    def __repr__(self) -> str:
        return f"Pace({self.most})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Pace, (self.most,)


class Bandwidth:
    """So many bytes a second, over all who take from it; what was taken too early is waited for,
    until ``stopping`` is set: nothing more will be taken then."""

    def __init__(
        self, most: int, *, stopping: threading.Event | None = None, clock: Clock = SYSTEM
    ) -> None:
        if most < 1:
            raise InvalidInput(f"a bandwidth must be at least 1 byte a second, not {most}")
        self.most = most
        self._stopping = stopping or threading.Event()
        self._clock = clock
        self._lock = threading.Lock()
        self._next = 0.0

    def take(self, count: int) -> None:
        """Wait until so many bytes more have passed in time."""
        with self._lock:
            start = max(self._clock.now(), self._next)
            self._next = start + count / self.most
        # A part of a large object may be minutes.
        while (left := start - self._clock.now()) > 0 and not self._stopping.is_set():
            self._clock.sleep(min(left, SLICE))
