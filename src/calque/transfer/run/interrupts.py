"""Ctrl-C falls on the main thread: work goes on elsewhere until it has come to a good end.

Python raises KeyboardInterrupt wherever the main thread happens to be: between taking a lock and
the block that would give it back, so that whoever needs it next waits for ever, or while an earlier
one is on its way up, so that two are seen as one. While this thread waits for others, signals are
therefore only noted, and answered between two looks, when nothing is held.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from calque.operator import interruptible
from calque.operator.http.waiting_time import SLICE

GRACE_SECONDS = 2.0
"""How long what is in flight may take to end by itself, when a run is stopped by hand."""
_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Look = Callable[[], None]
"""Answers the signals that have come; raises what their handlers raise."""


@contextmanager
def note_signals() -> Iterator[Look]:
    """Note what would stop this thread; the look answers it as the handlers from before would have.

    Those that have no handler of Python's stay as they are, and so do all on other threads.
    """
    caught: list[tuple[int, FrameType | None]] = []
    handlers: dict[int, Callable[[int, FrameType | None], object]] = {}
    if threading.current_thread() is threading.main_thread():
        found = {number: signal.getsignal(number) for number in _STOPPING}
        handlers = {int(number): each for number, each in found.items() if callable(each)}

    def look() -> None:
        while caught:
            # One at a time: a second one is answered by the next look, as what it is.
            number, frame = caught.pop(0)
            handlers[number](number, frame)

    try:
        for number in handlers:
            signal.signal(number, lambda number, frame: caught.append((number, frame)))
        yield look
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        look()


def wait_until(
    changed: threading.Condition,
    ready: Callable[[], bool],
    look: Look,
    seconds: float | None = None,
) -> bool:
    """Wait on a condition, and look between two slices of that; whether it is ready."""
    until = None if seconds is None else time.monotonic() + seconds
    while True:
        look()
        left = SLICE if until is None else min(SLICE, until - time.monotonic())
        with changed:
            if interruptible.wait_until(changed, ready, left):
                return True
        if left < SLICE:
            return False


def see_through(work: Callable[[], None], stop: Callable[[], None]) -> None:
    """Do something on another thread; Ctrl-C here calls ``stop``, which ends it between two steps,
    so that each act has its row. Whoever asks a second time waits for nothing."""
    errors: list[BaseException] = []
    changed = threading.Condition()
    ended: list[bool] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)
        finally:
            with changed:
                ended.append(True)
                changed.notify_all()

    with note_signals() as look:
        threading.Thread(target=run, name="calque-phase", daemon=True).start()
        try:  # and no join: one that was interrupted takes the thread for ended
            wait_until(changed, lambda: bool(ended), look)
        except KeyboardInterrupt:
            stop()
            wait_until(changed, lambda: bool(ended), look)
    if errors:
        raise errors[0]
