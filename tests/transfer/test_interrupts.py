"""Ctrl-C while others work: each is answered by itself, where nothing is held."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType

import pytest

from calque.transfer.run.interrupts import note_signals, see_through


def _raise(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt(number)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """Those of the commands: a polite kill counts as Ctrl-C does."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, _raise)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def _send_both() -> None:
    os.kill(os.getpid(), signal.SIGINT)
    os.kill(os.getpid(), signal.SIGTERM)


def test_two_at_once_are_two() -> None:
    """The first stops the work between two steps, the second waits for it no longer."""
    release, stops = threading.Event(), []

    def work() -> None:
        _send_both()
        release.wait(30)

    try:
        with pytest.raises(KeyboardInterrupt):
            see_through(work, lambda: stops.append(release.is_set()))
    finally:
        release.set()
    assert stops == [False], "stopped once, and left before the work had ended"


def test_work_that_stops_ends_as_it_likes() -> None:
    """After one Ctrl-C nothing is raised: what was asked for is done between two steps."""
    asked = threading.Event()

    def work() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        assert asked.wait(30)

    see_through(work, asked.set)


def test_a_storm_keeps_no_lock() -> None:
    """Signals at every moment of the waits: the work always ends, and nothing else is raised."""

    def raise_inside(number: int, frame: FrameType | None) -> None:
        while frame is not None:  # the last ones may come when all is over
            if frame.f_code is see_through.__code__:
                raise KeyboardInterrupt
            frame = frame.f_back

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, raise_inside)
    ended = 0

    def work() -> None:
        nonlocal ended
        for _ in range(20):
            _send_both()
        ended += 1

    for _ in range(50):
        with contextlib.suppress(KeyboardInterrupt):
            see_through(work, lambda: None)
        # None, if the last signal of the round before fell on a thread that was slow to tell.
        for thread in [each for each in threading.enumerate() if each.name == "calque-phase"]:
            thread.join(30)
            assert not thread.is_alive()
    assert ended
    time.sleep(0.1)  # the last ones of all may be as slow


def test_handlers_are_as_before_and_late_signals_are_answered() -> None:
    """What comes without a look is answered on the way out, by whoever was in charge before."""
    with pytest.raises(KeyboardInterrupt), note_signals():
        os.kill(os.getpid(), signal.SIGTERM)
    assert signal.getsignal(signal.SIGINT) is _raise
    assert signal.getsignal(signal.SIGTERM) is _raise


def test_other_threads_and_other_handlers_are_left_alone() -> None:
    """Only the main thread may set handlers; one that is not of Python's stays."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with note_signals():
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    ended: list[bool] = []
    thread = threading.Thread(target=lambda: see_through(lambda: ended.append(True), list))
    thread.start()
    thread.join(60)
    assert ended == [True]
