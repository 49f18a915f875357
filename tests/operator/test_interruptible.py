"""Ctrl-C that the system gives to another thread: whoever waits in the main one hears of it."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, sys, threading, time
from concurrent.futures import Future
from calque.operator.drivers.part_queue import PartQueue, pool_for
from calque.operator.interruptible import join, result_of, wait_until
from calque.operator.layers import ConcurrencyLimit
from calque.operator.layers.chain import Call
from calque.values import ByteRange

for_ever = threading.Event()
def take_place():
    limit = ConcurrencyLimit(1)
    def hold():
        with limit.place(Call("read", "x")):
            held.set()
            for_ever.wait()
    held = threading.Event()
    threading.Thread(target=hold, daemon=True).start()
    held.wait()
    with limit.place(Call("read", "x")):
        pass
def take_part():
    todo = [(1, ByteRange(0, 1))]
    PartQueue(todo, lambda number, span: for_ever.wait(), concurrent=1, pool=pool_for(1, 1)).take()
def wait_on_a_condition():
    changed = threading.Condition()
    with changed:
        wait_until(changed, lambda: False)
waits = {
    "condition": wait_on_a_condition,
    "future": lambda: result_of(Future()),
    "thread": lambda: join(next(each for each in threading.enumerate() if each.name == "other")),
    "place": take_place,
    "part": take_part,
}
other = threading.Thread(target=for_ever.wait, name="other", daemon=True)
other.start()
def interrupt():
    time.sleep(0.5)  # enough, or it comes before the wait, which is heard as well
    signal.pthread_kill(other.ident, signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
try:
    waits[sys.argv[1]]()
except KeyboardInterrupt:
    print("heard", flush=True)
    os._exit(0)
"""


@pytest.mark.parametrize("wait", ["condition", "future", "thread", "place", "part"])
def test_heard(wait: str) -> None:
    """It does not take the end of what is waited for, which never comes."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, wait], capture_output=True, text=True, timeout=100
    )
    assert done.stdout == "heard\n", done.stderr
