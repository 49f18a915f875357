"""Timeouts: per request and for the whole, apart; a living commit is not cut."""

from __future__ import annotations

import pickle

import pytest

from calque.errors import InvalidInput, TimedOut
from calque.operator import Operator
from calque.operator.layers import Call, Chain, Deadline, Timeout, default_layers
from tests.operator.layers.conftest import CALL, COMMIT, HandClock


def _passed(chain: Chain, call: Call) -> Call:
    return chain.run(call, lambda seen: seen)


def test_a_request_gets_its_time() -> None:
    """Ordinary requests the short time, slow ones the long."""
    chain = Chain((Timeout(step=10, slow=500),))
    assert _passed(chain, CALL).timeout == 10
    assert _passed(chain, COMMIT).timeout == 500


def test_the_shorter_time_counts() -> None:
    """A layer further in cannot lengthen what one further out allowed."""
    chain = Chain((Timeout(step=3), Timeout(step=10)))
    assert _passed(chain, CALL).timeout == 3


def test_the_whole_is_bounded_apart_from_steps(clock: HandClock) -> None:
    """A request waits for what is left at most; after the deadline none begins."""
    chain = Chain((Deadline.after(60, clock), Timeout(step=40, clock=clock)))
    assert _passed(chain, CALL).timeout == 40
    clock.pass_(45)
    assert _passed(chain, CALL).timeout == pytest.approx(15)
    clock.pass_(15)
    with pytest.raises(TimedOut, match="60 s") as caught:
        _passed(chain, CALL)
    assert not caught.value.retryable


def test_a_living_commit_is_not_cut(clock: HandClock) -> None:
    """Begun before the deadline, a slow request keeps its own time."""
    chain = Chain((Deadline.after(60, clock), Timeout(slow=1800, clock=clock)))
    clock.pass_(59)
    assert _passed(chain, COMMIT).timeout == 1800


def test_a_commit_that_trickles_ends() -> None:
    """What only trickles is not living for ever: the time of slow requests bounds the whole."""
    assert _passed(Chain((Timeout(slow=1800),)), COMMIT).within == 1800


def test_a_copy_ends_at_its_deadline(clock: HandClock) -> None:
    """A copy that takes too long is aborted and leaves nothing."""
    op = Operator.from_uri("memory://", threshold=10, part_size=10)
    op.write("from", b"x" * 100)
    copier = op.layer(Deadline.after(5, clock)).copier("from", "to", concurrent=1)
    next(copier)
    clock.pass_(6)
    with pytest.raises(TimedOut):
        copier.run()
    assert not op.exists("to")
    assert not list(op.leftovers())


def test_cleaning_up_after_a_deadline_is_bounded(clock: HandClock) -> None:
    """It gets some seconds more, not for ever."""
    chain = Chain((Deadline.after(60, clock), Timeout(step=40, clock=clock)))
    clock.pass_(100)
    assert _passed(chain, Call("abort", "a/b")).within == pytest.approx(10)
    with pytest.raises(TimedOut):
        _passed(chain, CALL)


def test_a_deadline_pickles_as_what_is_left() -> None:
    """Clocks of two processes do not agree, durations do."""
    deadline = pickle.loads(pickle.dumps(Deadline.after(100)))
    assert 90 < deadline.at - deadline.clock.now() <= 100
    assert pickle.loads(pickle.dumps(Timeout(step=5))) == Timeout(step=5)


def test_nonsense_is_refused() -> None:
    """No time at all is no timeout."""
    for wrong in (lambda: Timeout(step=0), lambda: Timeout(slow=-1), lambda: Deadline.after(0)):
        with pytest.raises(InvalidInput):
            wrong()


def test_the_default_chain() -> None:
    """Retry outside, timeout inside, and it pickles with an operator."""
    names = [type(layer).__name__ for layer in default_layers()]
    assert names == ["Retry", "Timeout"]
    op = Operator.from_uri("memory://x", layers=default_layers())
    again = pickle.loads(pickle.dumps(op))
    assert again.service.chain.layers == default_layers()
