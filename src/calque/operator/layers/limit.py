"""Concurrency limit: so many requests at once, over all objects and parts."""

from __future__ import annotations

import threading
import uuid
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from calque.errors import Aborted, InvalidInput, TimedOut
from calque.operator.http.waiting_time import SLICE
from calque.operator.layers.chain import Call
from calque.operator.layers.clock import SYSTEM

T = TypeVar("T")


class ConcurrencyLimit:
    """At most ``most`` requests in flight among all operators that carry this same limit.

    Give one limit to many operators and it bounds them together, objects and parts alike. It
    pickles as itself: in one process all copies of a limit are one limit, so the tasks of a Spark
    executor share it although each unpickled its own operator.

    A request made while serving another on the same thread (a write that reads its bytes from
    another service) takes no second place: it would wait for itself.
    """

    def __init__(self, most: int, *, identity: str | None = None) -> None:
        if most < 1:
            raise InvalidInput(f"a concurrency limit must be at least 1, not {most}")
        self.most = most
        self.identity = identity or uuid.uuid4().hex
        self._places = _PLACES.of(self.identity, most)

    def __call__(self, call: Call, proceed: Callable[[Call], T]) -> T:
        # Nested: waiting for a second place while holding the only one would never end.
        if self._places.held_here:
            return proceed(call)
        self._places.take(call)
        try:
            return proceed(call)
        finally:
            self._places.give_back()

    @contextmanager
    def place(self, call: Call) -> Iterator[None]:
        """One place for several requests of this thread in turn: no more than one is in flight.

        ``call`` says how long it is waited for.
        """
        if self._places.held_here:
            yield
            return
        self._places.take(call)
        try:
            yield
        finally:
            self._places.give_back()

    @property
    def in_flight(self) -> int:
        """Requests under way now."""
        return self._places.taken

    def __repr__(self) -> str:
        return f"ConcurrencyLimit({self.most})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.most, self.identity)


def _rebuild(most: int, identity: str) -> ConcurrencyLimit:
    return ConcurrencyLimit(most, identity=identity)


class _Places:
    """The semaphore of one limit in this process."""

    def __init__(self, most: int) -> None:
        self._free = threading.BoundedSemaphore(most)
        self._here = threading.local()
        self._counting = threading.Lock()
        self.taken = 0

    @property
    def held_here(self) -> bool:
        return getattr(self._here, "held", False)

    def take(self, call: Call) -> None:
        """Wait for a place, no longer than the call itself may wait."""
        if not self._free.acquire(blocking=False):
            self._wait(call)
        self._here.held = True
        with self._counting:
            self.taken += 1

    def _wait(self, call: Call) -> None:
        # In slices, also where nothing else is to be looked at: Ctrl-C is heard between them.
        while not self._free.acquire(timeout=SLICE):
            if call.stopped is not None and call.stopped():
                raise Aborted(f"{call.verb} of {call.path!r} was stopped")
            if call.deadline is not None and SYSTEM.now() >= call.deadline:
                raise TimedOut(
                    f"{call.verb} of {call.path!r} waited for its turn until the time for the "
                    "whole was over",
                    retryable=False,
                )

    def give_back(self) -> None:
        # In the reverse order of taking: who gets the freed place counts itself after us, so that
        # the count never shows more than the limit.
        with self._counting:
            self.taken -= 1
        self._here.held = False
        self._free.release()


class _Registry:
    """The limits that live in this process, by identity."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: weakref.WeakValueDictionary[str, _Places] = weakref.WeakValueDictionary()

    def of(self, identity: str, most: int) -> _Places:
        with self._lock:
            # Weak: a limit that no operator carries any more is forgotten with its last one.
            places = self._known.get(identity)
            if places is None:
                places = self._known[identity] = _Places(most)
            return places


_PLACES = _Registry()
