"""Ctrl-C falls on the main thread: work goes on elsewhere until it has come to a good end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_SLICE = 0.2
"""Seconds between two looks. The system may give a signal to another thread, which wakes nobody:
whoever waited without an end would not hear of it."""


def wait_until(
    changed: threading.Condition, ready: Callable[[], bool], seconds: float | None
) -> bool:
    """Wait on a condition that the caller holds, so that Ctrl-C is heard; whether it is ready."""
    until = None if seconds is None else time.monotonic() + seconds
    while not ready():
        left = _SLICE if until is None else min(_SLICE, until - time.monotonic())
        if left <= 0:
            return False
        changed.wait(left)
    return True


def see_through(work: Callable[[], None], stop: Callable[[], None]) -> None:
    """Do something on another thread; Ctrl-C here calls ``stop``, which ends it between two steps,
    so that each act has its row. Whoever asks a second time waits for nothing."""
    errors: list[BaseException] = []
    over = threading.Event()

    def run() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)
        finally:
            over.set()

    threading.Thread(target=run, name="calque-phase", daemon=True).start()
    try:
        _wait_for(over)  # and no join: one that was interrupted takes the thread for ended
    except KeyboardInterrupt:
        stop()
        _wait_for(over)
    if errors:
        raise errors[0]


def _wait_for(over: threading.Event) -> None:
    while not over.wait(_SLICE):
        pass
