"""How long to wait before trying again: later each time, and not in step with others."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, islice

from calque.errors import InvalidInput

_LARGEST_EXPONENT = 64
"""Beyond this a float would overflow long before any wait could be meant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Waits that grow from ``first`` by ``factor`` up to ``most`` seconds.

    ``jitter`` is the share of each wait that is left to chance: 0 waits exactly, 1 anything from
    nothing to the whole. Clients that failed together would come back together without it.
    """

    first: float
    factor: float = 2.0
    most: float = math.inf
    jitter: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.first <= self.most:
            raise InvalidInput("a wait cannot be negative, nor the first longer than the longest")
        if self.factor < 1:
            raise InvalidInput(f"waits cannot shrink: the factor is {self.factor}")
        if not 0 <= self.jitter <= 1:
            raise InvalidInput(f"jitter is a share between 0 and 1, not {self.jitter}")

    def wait(self, repeat: int, chance: Callable[[], float] = random.random) -> float:
        """The seconds before a repeat; the first repeat is number 1."""
        longest = min(self.most, self.first * self.factor ** min(repeat - 1, _LARGEST_EXPONENT))
        return longest * (1.0 - self.jitter + self.jitter * chance())

    def waits(self, repeats: int | None = None) -> Iterator[float]:
        """The waits before so many repeats, or before as many as are asked for."""
        return (self.wait(number) for number in islice(count(1), repeats))

    def sleep(self, repeat: int) -> None:
        """Wait as long as is due before a repeat."""
        time.sleep(self.wait(repeat))
