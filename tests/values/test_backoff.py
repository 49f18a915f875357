"""Backoff: later each time, within bounds, and scattered by chance."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import calque
from calque.errors import InvalidInput
from calque.values import Backoff


def test_waits_grow_to_the_longest() -> None:
    """Each wait is the one before times the factor, and none is above the longest."""
    backoff = Backoff(first=1.0, factor=3.0, most=10.0, jitter=0.0)
    assert list(backoff.waits(5)) == [1.0, 3.0, 9.0, 10.0, 10.0]


@pytest.mark.parametrize(
    ("jitter", "chance", "wait"), [(0.5, 0.0, 1.0), (0.5, 1.0, 2.0), (1, 0, 0)]
)
def test_jitter_is_the_share_left_to_chance(jitter: float, chance: float, wait: float) -> None:
    """What is not left to chance is always waited."""
    assert Backoff(first=2.0, jitter=jitter).wait(1, lambda: chance) == wait


@given(
    first=st.floats(0.001, 10),
    factor=st.floats(1, 1000),
    jitter=st.floats(0, 1),
    repeat=st.integers(1, 10**9),
)
def test_every_wait_is_a_number_within_bounds(
    first: float, factor: float, jitter: float, repeat: int
) -> None:
    """However often something failed, the wait is finite and no longer than the longest."""
    wait = Backoff(first=first, factor=factor, most=20.0, jitter=jitter).wait(repeat)
    assert math.isfinite(wait)
    assert 0 <= wait <= 20.0


@pytest.mark.parametrize(
    "values",
    [
        {"first": -1},
        {"first": 2, "most": 1},
        {"first": 1, "factor": 0.5},
        {"first": 1, "jitter": 2},
    ],
)
def test_values_that_cannot_be_are_refused(values: dict[str, float]) -> None:
    """A wait that is never due, or shrinks, is a mistake of whoever wrote it."""
    with pytest.raises(InvalidInput):
        Backoff(**values)


def test_no_module_computes_waits_of_its_own() -> None:
    """Every wait before another try comes from here: none grows or scatters by other means."""
    own = re.compile(r"sleep\(.*(\*\*|random|uniform)")
    source = Path(calque.__file__).parent
    found = {str(file): own.search(file.read_text()) for file in source.rglob("*.py")}
    assert [name for name, match in found.items() if match] == []
