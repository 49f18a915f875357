"""Whether a node answers: what is asked of it takes a thread that can be left behind.

A frozen disk or a stalled server says nothing, not even no, and what waits for it cannot be
interrupted. So nobody waits longer than a deadline. While a request that was given up still hangs,
the node is not asked again: one silence costs one deadline and one thread, not one for each piece.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from calque.errors import TimedOut

T = TypeVar("T")

ANSWER_WITHIN = 10.0
"""Seconds for one small request: a look, a delete."""


class Liveness:
    """What is known of one node's answering. Safe to share between threads."""

    def __init__(self, name: str) -> None:
        self._name = name
        # Replaced whole and never changed in place, so that no lock is needed. Two threads that
        # note a silence at once may lose one of the two; the node stays silent by the other.
        self._hanging: list[tuple[threading.Thread, float]] = []

    def require(self) -> None:
        """TimedOut while a request that was given up still hangs."""
        self._hanging = hanging = [each for each in self._hanging if each[0].is_alive()]
        if any(due <= time.monotonic() for _, due in hanging):
            raise TimedOut(f"node {self._name} has not answered an earlier request yet")

    def note_silence(self, hanging: threading.Thread) -> None:
        """A request was given up; ``hanging`` is the thread that still waits for it."""
        self.leave_behind(hanging, 0)

    def leave_behind(self, straggler: threading.Thread, seconds: float) -> None:
        """A request is not waited for any more; it counts as given up in so many seconds."""
        self._hanging = [*self._hanging, (straggler, time.monotonic() + seconds)]

    def run_within(self, seconds: float, work: Callable[[], T]) -> T:
        """What ``work`` gives; TimedOut when it takes longer, and it is left behind."""
        self.require()
        request = Request(work)
        request.start()
        request.join(seconds)
        if request.is_alive():
            self.note_silence(request)
            raise TimedOut(f"node {self._name} has not answered for {seconds:g} seconds")
        if request.error is not None:
            raise request.error
        return request.answer  # type: ignore[return-value]  # it has one, without an error


class Request(threading.Thread):
    """Work that may never end, with its answer or its error once it has."""

    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__(name="node-request", daemon=True)
        self._work = work
        self.answer: object = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.answer = self._work()
        except BaseException as error:
            self.error = error
