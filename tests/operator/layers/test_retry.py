"""Retry: only what may help, later each time, never for ever, never hot."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calque.errors import CalqueError, InvalidInput, NotFound, RateLimited, TimedOut, Unavailable
from calque.operator.layers import Call, Chain, Deadline, Retry
from tests.operator.layers.conftest import CALL, COMMIT, HandClock


def failing(*errors: CalqueError) -> tuple[Callable[[Call], str], list[Call]]:
    """A request that fails with these errors in turn and then answers; and what it was asked."""
    seen: list[Call] = []
    coming: Iterator[CalqueError] = iter(errors)

    def request(call: Call) -> str:
        seen.append(call)
        for error in coming:
            raise error
        return "answer"

    return request, seen


def test_fails_twice_then_works(clock: HandClock) -> None:
    """The answer comes out; the waits doubled."""
    request, seen = failing(Unavailable("1"), Unavailable("2"))
    retry = Retry(first=1.0, clock=clock)
    assert Chain((retry,)).run(CALL, request) == "answer"
    assert len(seen) == 3
    assert clock.waits == [0.75, 1.5]


def test_what_cannot_help_is_not_repeated(clock: HandClock) -> None:
    """An error that is not retryable passes at once."""
    request, seen = failing(NotFound("gone"))
    with pytest.raises(NotFound):
        Chain((Retry(clock=clock),)).run(CALL, request)
    assert len(seen) == 1
    assert clock.waits == []


def test_other_exceptions_pass(clock: HandClock) -> None:
    """A bug is no fault of the network."""

    def request(_: Call) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Chain((Retry(clock=clock),)).run(CALL, request)


def test_attempts_are_bounded(clock: HandClock) -> None:
    """After the last attempt its error is raised, with a note of how often and how long."""
    request, seen = failing(*(Unavailable(str(number)) for number in range(100)))
    with pytest.raises(Unavailable, match="3") as caught:
        Chain((Retry(attempts=4, clock=clock),)).run(CALL, request)
    assert len(seen) == 4
    assert "tried 4 times" in caught.value.__notes__[0]


def test_refusals_have_a_bound_of_their_own(clock: HandClock) -> None:
    """Where asked for, a server that only wants us slower is asked more often than a broken one."""
    retry = Retry(attempts=3, refusals=9, clock=clock)
    for kind, most in ((RateLimited, 9), (Unavailable, 3)):
        request, seen = failing(*(kind("no") for _ in range(100)))
        with pytest.raises(kind):
            Chain((retry,)).run(CALL, request)
        assert len(seen) == most
    with pytest.raises(InvalidInput):
        Retry(attempts=3, refusals=2)


def test_time_is_bounded(clock: HandClock) -> None:
    """No attempt begins later than ``within`` after the first."""
    request, seen = failing(*(Unavailable(str(number)) for number in range(100)))
    with pytest.raises(Unavailable):
        Chain((Retry(attempts=100, first=1, longest=4, within=10, clock=clock),)).run(CALL, request)
    assert sum(clock.waits) <= 10
    assert 3 <= len(seen) <= 6


@pytest.mark.parametrize("error", [RateLimited, Unavailable])
def test_retry_after_is_obeyed(clock: HandClock, error: type[Unavailable]) -> None:
    """Never sooner than the server asked, however small our own wait would be."""
    request, _ = failing(error("slow down", retry_after=7.0))
    Chain((Retry(first=0.1, clock=clock),)).run(CALL, request)
    assert 7.0 < clock.waits[0] < 7.2


def test_a_retry_after_beyond_the_bound_gives_up(clock: HandClock) -> None:
    """It is not waited for in part: that would be a request the server asked us not to send."""
    request, seen = failing(RateLimited("tomorrow", retry_after=86400.0))
    with pytest.raises(RateLimited):
        Chain((Retry(clock=clock),)).run(CALL, request)
    assert len(seen) == 1
    assert clock.waits == []


def test_a_commit_is_repeated_only_when_it_surely_did_not_happen(clock: HandClock) -> None:
    """A lost answer of a call that is not idempotent is raised; a refusal may be repeated."""
    request, seen = failing(TimedOut("no answer"))
    with pytest.raises(TimedOut):
        Chain((Retry(clock=clock),)).run(COMMIT, request)
    assert len(seen) == 1
    request, seen = failing(RateLimited("not now"))
    assert Chain((Retry(clock=clock),)).run(COMMIT, request) == "answer"
    assert len(seen) == 2


def test_a_deadline_ends_the_attempts(clock: HandClock) -> None:
    """The deadline stands outside; no wait goes beyond it."""
    request, seen = failing(*(Unavailable(str(number)) for number in range(100)))
    layers = (Deadline.after(5, clock), Retry(attempts=100, first=1, clock=clock))
    with pytest.raises(Unavailable):
        Chain(layers).run(CALL, request)
    assert sum(clock.waits) <= 5
    assert len(seen) >= 2


@given(
    attempts=st.integers(1, 12),
    first=st.floats(0.001, 5),
    growth=st.floats(1, 50),
    within=st.floats(0, 300),
    luck=st.floats(0, 1, exclude_max=True),
    hints=st.lists(st.none() | st.floats(-5, 100), min_size=12, max_size=12),
    took=st.floats(0, 30),
)
def test_never_a_hot_loop(
    attempts: int,
    first: float,
    growth: float,
    within: float,
    luck: float,
    hints: list[float | None],
    took: float,
) -> None:
    """Whatever settings, chance and servers say: every wait is real, attempts and time bounded."""
    clock = HandClock(luck=luck)
    begun, seen = clock.now(), 0

    def request(_: Call) -> None:
        nonlocal seen
        hint = hints[seen % len(hints)]
        seen += 1
        assert clock.now() - begun <= within + took or seen == 1
        clock.pass_(took)
        raise Unavailable("always", retry_after=hint)

    retry = Retry(
        attempts=attempts, first=first, longest=first * growth, within=within, clock=clock
    )
    with pytest.raises(Unavailable):
        retry(CALL, request)
    assert seen <= attempts
    assert len(clock.waits) == seen - 1
    for number, wait in enumerate(clock.waits):
        assert wait >= first / 2
        assert wait >= (hints[number] or 0)


def test_nonsense_is_refused() -> None:
    """Settings that would loop hot or never try are errors."""
    for wrong in ({"attempts": 0}, {"first": 0}, {"first": 2, "longest": 1}, {"within": -1}):
        with pytest.raises(InvalidInput):
            Retry(**wrong)  # type: ignore[arg-type]


def test_it_pickles() -> None:
    """As part of an operator it goes to other processes."""
    assert pickle.loads(pickle.dumps(Retry(attempts=3))) == Retry(attempts=3)
