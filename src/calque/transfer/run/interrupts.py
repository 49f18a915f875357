"""Ctrl-C falls on the main thread: work goes on elsewhere until it has come to a good end."""

from __future__ import annotations

import threading
from collections.abc import Callable

from calque.operator.http.patience import SLICE

GRACE_SECONDS = 2.0
"""How long what is in flight may take to end by itself, when a run is stopped by hand."""


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
    while not over.wait(SLICE):
        pass
