"""Timeouts: how long one request may wait, and when the whole must be over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from calque.errors import InvalidInput, TimedOut
from calque.operator.layers.chain import Call
from calque.operator.layers.clock import SYSTEM, Clock

T = TypeVar("T")

_CLEANUP = frozenset({"abort", "list_parts"})
_CLEANUP_SECONDS = 10.0
"""What a late copy may take to remove its leavings; a server that is silent gets no longer."""
_SHORTEST = 0.001
"""A transport takes 0 for "do not wait at all" or "for ever"; neither is meant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeout:
    """Says how long a service may wait for the answer of one request.

    ``step`` is for ordinary requests, ``slow`` for those whose living answer may take minutes (the
    Complete of a large upload). A call that came with a shorter time keeps it, and an ordinary one
    waits no longer than its deadline.
    """

    step: float = 60.0
    slow: float = 1800.0
    clock: Clock = SYSTEM

    def __post_init__(self) -> None:
        if self.step <= 0 or self.slow <= 0:
            raise InvalidInput("a timeout must be positive")

    def __call__(self, call: Call, proceed: Callable[[Call], T]) -> T:
        allowed = [self.slow if call.slow else self.step]
        if call.timeout is not None:
            allowed.append(call.timeout)
        # A slow request is not cut by the deadline: whether the commit happened would be unknown.
        # Trickling for ever it is no living one, so its own time bounds the whole of it.
        left: float | None = self.slow if call.slow else None
        if call.deadline is not None and not call.slow:
            left = max(call.deadline - self.clock.now(), _SHORTEST)
            allowed.append(left)
        return proceed(call.with_timeout(min(allowed), left))


@dataclass(frozen=True, slots=True)
class Deadline:
    """When everything that passes must be over: no request, and no further attempt, begins later.

    Made by :meth:`after`, for one piece of work: ``op.layer(Deadline.after(600)).copy(…)``. A
    request under way may wait only for what is left, save a ``slow`` one: to cut a living commit
    short would only leave us not knowing whether it happened. Cleaning up is let through, for some
    seconds: without it every late copy would leave an upload. It pickles as the time that is left.
    """

    at: float
    seconds: float
    clock: Clock = SYSTEM

    @classmethod
    def after(cls, seconds: float, clock: Clock = SYSTEM) -> Deadline:
        """A deadline so many seconds from now."""
        if seconds <= 0:
            raise InvalidInput(f"a deadline must lie ahead, not {seconds} s")
        return cls(clock.now() + seconds, seconds, clock)

    def __call__(self, call: Call, proceed: Callable[[Call], T]) -> T:
        at = self.at if call.deadline is None else min(self.at, call.deadline)
        if call.verb in _CLEANUP:
            at = max(at, self.clock.now() + _CLEANUP_SECONDS)
        if self.clock.now() >= at:
            raise TimedOut(
                f"the whole took longer than its {self.seconds:g} s; "
                f"{call.verb} of {call.path!r} was not begun",
                retryable=False,
            )
        return proceed(replace(call, deadline=at))

    # Monotonic clocks of two machines have nothing in common, so only what is left travels.
    def __reduce__(self) -> tuple[Any, ...]:
        return _restore_deadline, (self.at - self.clock.now(), self.seconds, self.clock)


def _restore_deadline(left: float, seconds: float, clock: Clock) -> Deadline:
    return Deadline(clock.now() + left, seconds, clock)
