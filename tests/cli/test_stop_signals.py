"""Signals to a command that serves: one lets it end, another ends it."""

from __future__ import annotations

import signal

import pytest

from tests.program import run_program

TWICE = """
import os, signal, sys
from calque.cli import stop_signals

number = int(sys.argv[1])
caught = stop_signals.catch_stop_signals()
os.kill(os.getpid(), signal.SIGTERM)
os.kill(os.getpid(), number)
print(*caught, flush=True)
stop_signals._SAME = 0.0
os.kill(os.getpid(), number)
print("still here")
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_it_at_once(number: signal.Signals) -> None:
    """Unless it comes together with the first, which a terminal and a parent may both send."""
    done = run_program(TWICE, number.value)
    assert done.stdout.split() == [str(signal.SIGTERM.value), str(number.value)]
    assert done.returncode == 128 + number
