"""How long a connection waits for its peer: bounded, however the peer trickles, and stoppable."""

from __future__ import annotations

import io
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")

SLICE = 0.2
"""How long a wait that may be called off lasts before it is asked whether it was."""
_SHORTEST = 0.001


class CalledOffError(OSError):
    """Our own side waits no longer."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long an exchange waits: for the next byte, for the last one, and for whom."""

    silence: float
    until: float | None = None
    """By the monotonic clock."""
    stopped: Callable[[], bool] | None = None

    @classmethod
    def of(
        cls, timeout: float, within: float | None, stopped: Callable[[], bool] | None
    ) -> Patience:
        return cls(timeout, None if within is None else time.monotonic() + within, stopped)

    def wait(self, sock: socket.socket, act: Callable[[], T]) -> T:
        """Do what may block, for as long as there is patience."""
        silent = time.monotonic() + self.silence
        while True:
            # Set anew for each byte: less is left for the whole, and a stop must be seen soon.
            sock.settimeout(self._slice(silent))
            try:
                return act()
            except TimeoutError:
                now = time.monotonic()
                if now >= silent or (self.until is not None and now >= self.until):
                    raise

    def _slice(self, silent: float) -> float:
        now = time.monotonic()
        if self.stopped is not None and self.stopped():
            raise CalledOffError("it was stopped")
        if self.until is not None and now >= self.until:
            raise TimeoutError("the time for the whole is over")
        ends = [silent - now]
        if self.until is not None:
            ends.append(self.until - now)
        if self.stopped is not None:
            ends.append(SLICE)
        return max(min(ends), _SHORTEST)


class Incoming(io.RawIOBase):
    """What arrives at a socket, waited for as long as the exchange under way has patience."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.patience = Patience(0.0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        return self.patience.wait(self._sock, lambda: self._sock.recv_into(buffer))
