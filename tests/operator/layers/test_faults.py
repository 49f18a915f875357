"""Fault injection does what it says, at the request it says."""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys

import pytest

from calque.errors import InvalidInput, Unavailable
from calque.operator import Operator
from calque.operator.layers import Call, Chain, Fault, FaultInjection, Retry
from tests.operator.layers.conftest import CALL, HandClock


def test_the_nth_call_of_a_verb_fails() -> None:
    """Only that one, only that verb."""
    faults = FaultInjection(Fault(verb="copy_part", nth=2, error=Unavailable("injected")))
    chain = Chain((faults,))
    outcomes = []
    for verb in ("copy_part", "stat", "copy_part", "copy_part"):
        try:
            chain.run(Call(verb, "x"), lambda _: None)
            outcomes.append("ok")
        except Unavailable:
            outcomes.append("failed")
    assert outcomes == ["ok", "ok", "failed", "ok"]
    assert faults.count("copy_part") == 3


def test_times_and_paths() -> None:
    """So many in a row, for one path only."""
    faults = FaultInjection(Fault(path="a", times=2, error=Unavailable("injected")))
    failed = []
    for path in ("b", "a", "b", "a", "a"):
        try:
            faults(Call("stat", path), lambda _: None)
        except Unavailable:
            failed.append(path)
    assert failed == ["a", "a"]


def test_after_means_it_happened() -> None:
    """The request is done and its answer is lost."""
    done: list[str] = []
    faults = FaultInjection(Fault(when="after", error=Unavailable("lost")))
    with pytest.raises(Unavailable):
        faults(CALL, lambda call: done.append(call.verb))
    assert done == ["copy_part"]


def test_delay(clock: HandClock) -> None:
    """It waits by the clock it was given."""
    faults = FaultInjection(Fault(delay=2.5), clock=clock)
    faults(CALL, lambda _: None)
    faults(CALL, lambda _: None)
    assert clock.waits == [2.5]


def test_retries_meet_a_fresh_error_each_time(clock: HandClock) -> None:
    """Notes that one attempt adds are not carried to the next."""
    error = Unavailable("injected")
    faults = FaultInjection(Fault(times=5, error=error))
    with pytest.raises(Unavailable) as caught:
        Chain((Retry(attempts=3, clock=clock), faults)).run(CALL, lambda _: None)
    assert len(caught.value.__notes__) == 1
    assert not hasattr(error, "__notes__")


def test_a_part_that_fails_twice_and_then_works(clock: HandClock) -> None:
    """Through a whole copy: bytes counted once, the target right."""
    faults = FaultInjection(Fault(verb="copy_part", nth=2, times=2, error=Unavailable("injected")))
    op = Operator.from_uri("memory://", threshold=10, part_size=10)
    op.write("from", b"0123456789" * 5)
    flaky = op.layer(faults).layer(Retry(clock=clock))
    copier = flaky.copier("from", "to", concurrent=1)
    assert sum(copier) == 50
    assert op.read("to") == b"0123456789" * 5
    assert faults.count("copy_part") == 7
    assert len(clock.waits) == 2


def test_kill() -> None:
    """The process ends as if by ``kill -9``."""
    code = """
from calque.operator.layers import *
FaultInjection(Fault(kill=True))(Call("stat", "x"), lambda _: print("never"))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL
    assert done.stdout == ""


def test_nonsense_is_refused() -> None:
    """A fault must do something, at a request that exists."""
    for wrong in ({}, {"nth": 0, "delay": 1.0}, {"times": 0, "delay": 1.0}):
        with pytest.raises(InvalidInput):
            Fault(**wrong)


def test_it_pickles() -> None:
    """A copy counts anew with the same faults."""
    faults = FaultInjection(Fault(nth=1, error=Unavailable("injected")))
    again = pickle.loads(pickle.dumps(faults))
    with pytest.raises(Unavailable):
        again(CALL, lambda _: None)
    assert again.count("copy_part") == 1
    assert faults.count("copy_part") == 0
