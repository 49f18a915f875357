"""Waits of a thread that Ctrl-C falls on: they have no end, and are heard through all the same.

The system may give a signal to another thread, which wakes nobody: whoever waited in one piece
would hear of it only when what is waited for has come.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import TypeVar

from calque.operator.http.waiting_time import SLICE

T = TypeVar("T")


def wait_until(
    changed: threading.Condition, ready: Callable[[], bool], seconds: float | None = None
) -> bool:
    """Wait on a condition that the caller holds; whether it is ready."""
    until = None if seconds is None else time.monotonic() + seconds
    while not ready():
        left = SLICE if until is None else min(SLICE, until - time.monotonic())
        if left <= 0:
            return False
        changed.wait(left)
    return True


def wait_for_first(futures: Iterable[Future[T]]) -> tuple[set[Future[T]], set[Future[T]]]:
    """Those that are done, once one of them is, and the others."""
    done, others = set[Future[T]](), set(futures)
    while not done and others:
        done, others = wait(others, SLICE, return_when=FIRST_COMPLETED)
    return done, others


def result_of(future: Future[T]) -> T:
    """What a call on another thread has brought; raises what it has raised."""
    wait_for_first([future])
    return future.result()


def join(thread: threading.Thread) -> None:
    """Wait for a thread's end."""
    while thread.is_alive():
        thread.join(SLICE)
