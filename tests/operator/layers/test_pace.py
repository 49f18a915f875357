"""Pace: a bound that is kept, a rate that falls at once for all and grows again; bandwidth."""

from __future__ import annotations

import pickle
import threading

import pytest

from calque.errors import InvalidInput, NotFound, RateLimited
from calque.operator.layers import Bandwidth, Call, Pace
from tests.operator.layers.conftest import CALL, HandClock


def answer(call: Call) -> str:
    return "answer"


def refuse(call: Call) -> str:
    raise RateLimited("slow down")


def test_without_a_bound_nobody_waits(clock: HandClock) -> None:
    """As long as no server complains, a pace costs nothing."""
    pace = Pace(clock=clock)
    for _ in range(100):
        assert pace(CALL, answer) == "answer"
    assert clock.waits == []
    assert pace.rate is None


def test_a_bound_is_kept(clock: HandClock) -> None:
    """So many a second, the first at once."""
    pace, begun = Pace(10, clock=clock), clock.now()
    for _ in range(31):
        pace(CALL, answer)
    assert clock.now() - begun == pytest.approx(3.0)


def test_slow_down_is_for_all(clock: HandClock) -> None:
    """One refusal halves the rate that was seen; refusals of the same moment count once."""
    pace = Pace(clock=clock)
    for _ in range(100):
        pace(CALL, answer)
    for _ in range(5):
        with pytest.raises(RateLimited):
            pace(CALL, refuse)
    assert pace.rate is not None
    assert 45 <= pace.rate <= 55


def test_it_grows_again(clock: HandClock) -> None:
    """Each success adds a little; after a calm minute nothing is bounded any more."""
    pace = Pace(clock=clock)
    for _ in range(40):
        pace(CALL, answer)
    with pytest.raises(RateLimited):
        pace(CALL, refuse)
    low = pace.rate or 0.0
    for _ in range(200):
        pace(CALL, answer)
    assert low < (pace.rate or 0.0)
    clock.sleep(61)
    pace(CALL, answer)
    assert pace.rate is None


def test_growth_ends_at_the_bound(clock: HandClock) -> None:
    """A rate that was asked for is never exceeded, nor does it fall to nothing."""
    pace = Pace(8, clock=clock)
    for _ in range(20):
        with pytest.raises(RateLimited):
            pace(CALL, refuse)
        clock.sleep(1)
    assert pace.rate == 1.0
    for _ in range(200):
        pace(CALL, answer)
    assert pace.rate == 8


def test_other_errors_change_nothing(clock: HandClock) -> None:
    """What is missing is not slow."""
    pace = Pace(clock=clock)

    def missing(call: Call) -> str:
        raise NotFound("x")

    with pytest.raises(NotFound):
        pace(CALL, missing)
    assert pace.rate is None


def test_bandwidth(clock: HandClock) -> None:
    """Bytes are waited for after they were taken, so that the average keeps the bound."""
    bandwidth, begun = Bandwidth(1000, clock=clock), clock.now()
    for _ in range(11):
        bandwidth.take(500)
    assert clock.now() - begun == pytest.approx(5.0)


def test_who_is_stopped_waits_no_longer() -> None:
    """Not even for what is a quarter of an hour too early."""
    stopping = threading.Event()
    bandwidth = Bandwidth(1, stopping=stopping)
    bandwidth.take(900)
    waiting = threading.Thread(target=bandwidth.take, args=(1,), daemon=True)
    waiting.start()
    waiting.join(0.5)
    assert waiting.is_alive()
    stopping.set()
    waiting.join(60)
    assert not waiting.is_alive()


def test_bad_bounds() -> None:
    """Nothing a second is no bound."""
    for wrong in (0, -1):
        with pytest.raises(InvalidInput):
            Pace(wrong)
        with pytest.raises(InvalidInput):
            Bandwidth(wrong)


def test_pickle() -> None:
    """It crosses to another process with its bound."""
    assert pickle.loads(pickle.dumps(Pace(5))).most == 5
