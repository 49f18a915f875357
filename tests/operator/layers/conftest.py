"""A clock that only moves when somebody waits."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from calque.operator.layers import Call


@dataclass
class HandClock:
    """Time moves by sleeping (or by ``pass_``); every wait is written down."""

    time: float = 1000.0
    luck: float = 0.5
    waits: list[float] = field(default_factory=list)

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.time += seconds

    def chance(self) -> float:
        return self.luck

    def pass_(self, seconds: float) -> None:
        self.time += seconds


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


CALL = Call("copy_part", "a/b")
COMMIT = Call("complete", "a/b", idempotent=False, slow=True)
