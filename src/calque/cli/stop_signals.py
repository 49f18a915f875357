"""The signals that stop a command which serves."""

from __future__ import annotations

import signal


def catch_stop_signals() -> list[int]:
    """SIGINT and SIGTERM, as they come from now on: both let what runs end and leave cleanly.

    A list, because the handler may run while this thread holds the lock of anything better; and
    it is looked at now and then, because another thread may get the signal and wake nobody.
    """
    caught: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _frame: caught.append(number))
    return caught
