"""The signals that stop a command which serves."""

from __future__ import annotations

import os
import signal
import time
from types import FrameType

_SAME = 1.0
"""Seconds in which a second signal is the first one once more: a terminal sends it to everybody,
and whoever started us may pass it on."""


def catch_stop_signals() -> list[int]:
    """SIGINT and SIGTERM, as they come from now on: both let what runs end and leave cleanly.

    One that comes later ends the process at once: what runs may wait for a disk that never answers.

    A list, because the handler may run while this thread holds the lock of anything better; and
    it is looked at now and then, because another thread may get the signal and wake nobody.
    """
    caught: list[int] = []
    first = 0.0

    def note(number: int, _frame: FrameType | None) -> None:
        nonlocal first
        if not caught:
            first = time.monotonic()
        elif time.monotonic() - first > _SAME:
            os._exit(128 + number)  # a container's first process cannot be killed by its own signal
        caught.append(number)

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, note)
    return caught
