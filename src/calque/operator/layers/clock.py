"""Time and chance as layers see them, so that a test can bring its own."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import Protocol


class Clock(Protocol):
    """Where time comes from, how one waits, and a number in [0, 1)."""

    def now(self) -> float: ...

    def sleep(self, seconds: float) -> None: ...

    def chance(self) -> float: ...


@dataclass(frozen=True, slots=True)
class SystemClock:
    """The machine's monotonic clock."""

    def now(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def chance(self) -> float:
        return random.random()


SYSTEM = SystemClock()
