"""In which order layers stand, those of an operator and those of a run with it."""

from __future__ import annotations

from calque.operator.layers import (
    ConcurrencyLimit,
    FaultInjection,
    Layer,
    Metrics,
    Pace,
    Retry,
    Timeout,
    add_layers,
    default_layers,
)


def of_a_run() -> tuple[Layer, ...]:
    return default_layers(limit=ConcurrencyLimit(4), metrics=Metrics(), pace=Pace())


def test_those_of_a_run_stand_within_a_retry() -> None:
    """They see every attempt; a retry that nobody chose bears as many refusals as the run's."""
    found = add_layers(default_layers(), of_a_run())
    assert [type(each) for each in found] == [Retry, Pace, ConcurrencyLimit, Metrics, Timeout]
    assert found[0] == Retry(refusals=16)


def test_what_an_operator_has_stays() -> None:
    """A retry of its own is kept as it is, and so are its timeout and its place for faults."""
    own = (FaultInjection(), Retry(attempts=2), Timeout(step=1.0))
    found = add_layers(own, of_a_run())
    assert found[:2] == own[:2]
    assert found[-1] is own[-1]
    assert [type(each) for each in found[2:-1]] == [Pace, ConcurrencyLimit, Metrics]


def test_without_a_retry_they_stand_outermost() -> None:
    """The run repeats what fails then, and so what faults make fail."""
    own, more = (FaultInjection(),), of_a_run()
    assert add_layers(own, more) == (*more, *own)
