"""Layers for tests: one that counts requests, one that fails or holds them."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import TypeVar

from calque.operator.layers.chain import Call

T = TypeVar("T")


class Recorder:
    """Counts the requests of each verb, and the most that were in flight at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.calls: list[Call] = []
        self.flying: Counter[str] = Counter()
        self.most: Counter[str] = Counter()

    def __call__(self, call: Call, proceed: Callable[[Call], T]) -> T:
        with self._lock:
            self.calls.append(call)
            self.flying[call.verb] += 1
            self.most[call.verb] = max(self.most[call.verb], self.flying[call.verb])
        try:
            return proceed(call)
        finally:
            with self._lock:
                self.flying[call.verb] -= 1

    def count(self, verb: str) -> int:
        """Requests of a verb so far."""
        return sum(call.verb == verb for call in self.calls)

    @property
    def verbs(self) -> list[str]:
        """The verbs in the order they were sent."""
        return [call.verb for call in self.calls]


class Hook:
    """Calls a function before (or after) the requests of one verb, by their number from 1."""

    def __init__(self, verb: str, act: Callable[[int], None], *, after: bool = False) -> None:
        self._verb = verb
        self._act = act
        self._after = after
        self._lock = threading.Lock()
        self._seen = 0

    def __call__(self, call: Call, proceed: Callable[[Call], T]) -> T:
        if call.verb != self._verb:
            return proceed(call)
        with self._lock:
            self._seen += 1
            number = self._seen
        if self._after:
            answer = proceed(call)
            self._act(number)
            return answer
        self._act(number)
        return proceed(call)


def failing(error: Exception, *numbers: int) -> Callable[[int], None]:
    """A hook's act that raises for the requests of these numbers; without numbers for all."""

    def act(number: int) -> None:
        if not numbers or number in numbers:
            raise error

    return act
