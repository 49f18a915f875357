"""Stop: the layer by which an abort reaches requests that wait for their peer."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from calque.errors import Aborted
from calque.operator.layers.chain import Call, Chain

T = TypeVar("T")

_HARMLESS = frozenset({"read", "tags", "mark", "copy_part", "write_part"})
"""Only these are given up: they commit nothing. Of others it must be known how they ended, and
cleaning up needs requests too."""
_GRACE = 0.5
"""For a copy inside the server: it goes on there although we hang up, so most may end first."""
_NAP = 0.1


class Stoppable(Protocol):
    """What may be stopped; ``waited`` are the seconds that a request was left to end by itself."""

    def is_stopped(self, waited: float = 0.0) -> bool: ...


class StopSignal:
    """Told once, seen by every thread."""

    def __init__(self) -> None:
        self._since: float | None = None

    def stop(self) -> None:
        if self._since is None:
            self._since = time.monotonic()

    def is_stopped(self, waited: float = 0.0) -> bool:
        return self._since is not None and time.monotonic() - self._since >= waited


@dataclass(frozen=True, slots=True)
class Stopping:
    """Lets the transport give up what can be given up once the signal was told."""

    signal: Stoppable

    def __call__(self, call: Call, proceed: Callable[[Call], T]) -> T:
        # A call marked slow may be the one that commits, whatever its verb (the last piece of an
        # upload session, for example): it is never interrupted.
        if call.verb not in _HARMLESS or call.slow:
            return proceed(call)
        grace = _GRACE if call.verb == "copy_part" else 0.0
        return proceed(replace(call, stopped=lambda: self.signal.is_stopped(grace)))


def stop_of(chain: Chain) -> Callable[[], bool]:
    """Asks whether a signal around these requests was told."""
    signals = [layer.signal for layer in chain.layers if isinstance(layer, Stopping)]
    return lambda: any(signal.is_stopped() for signal in signals)


def sleep_unless_stopped(chain: Chain, seconds: float, what: str) -> None:
    """Wait between two requests; Aborted as soon as a signal around them was told."""
    stopped = stop_of(chain)
    end = time.monotonic() + seconds
    while True:
        if stopped():
            raise Aborted(f"{what} was stopped")
        left = end - time.monotonic()
        if left <= 0:
            return
        time.sleep(min(left, _NAP))
