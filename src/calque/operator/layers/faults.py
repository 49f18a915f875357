"""Fault injection for tests: fail, delay or kill at a chosen request."""

from __future__ import annotations

import copy
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from calque.errors import CalqueError, InvalidInput
from calque.operator.layers.chain import Call
from calque.operator.layers.clock import SYSTEM, Clock

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What happens to the ``nth`` request (from 1) of a verb, and to ``times`` in a row.

    ``verb`` and ``path`` None mean any. ``when`` "after" lets the request happen first: the answer
    is lost, as it is when a connection breaks. At least one of ``error``, ``delay``, ``kill``.
    """

    verb: str | None = None
    path: str | None = None
    nth: int = 1
    times: int = 1
    when: Literal["before", "after"] = "before"
    error: CalqueError | None = None
    delay: float = 0.0
    kill: bool = False

    def __post_init__(self) -> None:
        if self.nth < 1 or self.times < 1:
            raise InvalidInput("nth and times count from 1")
        if self.error is None and not self.delay and not self.kill:
            raise InvalidInput("a fault must fail, delay or kill")

    def concerns(self, call: Call) -> bool:
        return self.verb in (None, call.verb) and self.path in (None, call.path)


class FaultInjection:
    """A layer that lets faults happen. It stands innermost, where a real fault would.

    ``calls`` lists the (verb, path) of every request that reached it. A pickled copy counts anew.
    """

    def __init__(self, *faults: Fault, clock: Clock = SYSTEM) -> None:
        self.faults = faults
        self.calls: list[tuple[str, str]] = []
        self._clock = clock
        self._lock = threading.Lock()
        self._seen = [0] * len(faults)

    def __call__(self, call: Call, proceed: Callable[[Call], T]) -> T:
        due = self._due(call)
        for fault in due:
            if fault.when == "before":
                self._happen(fault)
        answer = proceed(call)
        for fault in due:
            if fault.when == "after":
                self._happen(fault)
        return answer

    def count(self, verb: str) -> int:
        """How many requests of a verb have come."""
        with self._lock:
            return sum(each == verb for each, _ in self.calls)

    def _due(self, call: Call) -> list[Fault]:
        due = []
        with self._lock:
            self.calls.append((call.verb, call.path))
            for index, fault in enumerate(self.faults):
                if fault.concerns(call):
                    self._seen[index] += 1
                    if fault.nth <= self._seen[index] < fault.nth + fault.times:
                        due.append(fault)
        return due

    def _happen(self, fault: Fault) -> None:
        if fault.delay:
            self._clock.sleep(fault.delay)
        if fault.kill:
            os.kill(os.getpid(), signal.SIGKILL)
        if fault.error is not None:
            raise copy.copy(fault.error)  # a fresh one each time: errors collect notes

    def __reduce__(self) -> tuple[Any, ...]:
        return _fresh, (self.faults, self._clock)


def _fresh(faults: tuple[Fault, ...], clock: Clock) -> FaultInjection:
    return FaultInjection(*faults, clock=clock)
