"""Retry: the same request again, later each time, and not for ever."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from calque.errors import Aborted, CalqueError, InvalidInput, RateLimited
from calque.operator.layers.chain import Call
from calque.operator.layers.clock import SYSTEM, Clock
from calque.values import Backoff

T = TypeVar("T")

_NAP = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Repeats a request whose error is ``retryable``; every other error passes at once.

    Waits double from ``first`` up to ``longest``; half of each is chance, so that clients which
    failed together do not come back together, and no wait is ever zero. A ``Retry-After`` is
    obeyed: never come back sooner. It ends with ``attempts`` requests, or when the next one would
    begin later than ``within`` seconds after the first or after the call's deadline; then the last
    error is raised, with a note.

    A request that is not idempotent is repeated only when its error says that the server surely
    did not act on it.
    """

    attempts: int = 6
    refusals: int | None = None
    """Requests instead of ``attempts`` where the server only asks to slow down. Of ten thousand
    objects a dozen are refused six times in a row by a server that refuses every third request."""
    first: float = 0.1
    longest: float = 20.0
    within: float = 180.0
    clock: Clock = SYSTEM

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise InvalidInput(f"attempts must be at least 1, not {self.attempts}")
        if self.refusals is not None and self.refusals < self.attempts:
            raise InvalidInput(f"refusals must be at least {self.attempts}, not {self.refusals}")
        if not 0 < self.first <= self.longest:
            raise InvalidInput("waits must be positive, and the first no longer than the longest")
        if self.within < 0:
            raise InvalidInput(f"within cannot be negative: {self.within}")

    def __call__(self, call: Call, proceed: Callable[[Call], T]) -> T:
        begun, attempt = self.clock.now(), 1
        while True:
            try:
                return proceed(call)
            except CalqueError as error:
                if not may_repeat(call, error):
                    raise
                wait = self._wait(attempt, error)
                again = self.clock.now() + wait
                if attempt >= self._most(error) or again > self._end(call, begun):
                    if attempt > 1:
                        spent = self.clock.now() - begun
                        error.add_note(f"{call.verb} was tried {attempt} times in {spent:.1f} s")
                    raise
            self._sleep(call, wait)
            attempt += 1

    def _most(self, error: CalqueError) -> int:
        if self.refusals is not None and isinstance(error, RateLimited):
            return self.refusals
        return self.attempts

    def _sleep(self, call: Call, seconds: float) -> None:
        """Wait; in short naps where the call may be stopped meanwhile."""
        if call.stopped is None:
            self.clock.sleep(seconds)
            return
        end = self.clock.now() + seconds
        while (left := end - self.clock.now()) > 0:
            if call.stopped():
                raise Aborted(f"{call.verb} of {call.path!r} was stopped")
            self.clock.sleep(min(left, _NAP))

    def _end(self, call: Call, begun: float) -> float:
        end = begun + self.within
        return end if call.deadline is None else min(end, call.deadline)

    def _wait(self, attempt: int, error: CalqueError) -> float:
        backoff = Backoff(first=self.first, most=self.longest)
        wait = backoff.wait(attempt, self.clock.chance)
        if error.retry_after is None:
            return wait
        # Added, not the longer of the two: everybody was told the same moment to come back.
        return max(error.retry_after, 0.0) + wait


def may_repeat(call: Call, error: CalqueError) -> bool:
    """Whether sending the call again can help and cannot harm."""
    return error.retryable and (call.idempotent or error.surely_not_acted)
