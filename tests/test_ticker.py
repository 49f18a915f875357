"""A look now and then, from a thread of its own."""

from __future__ import annotations

import threading

import pytest

from calque.ticker import call_every


def test_it_looks_until_the_work_is_over() -> None:
    """Again and again beside the work, however that ends; never afterwards."""
    looks: list[str] = []
    twice = threading.Event()

    def look() -> None:
        looks.append(threading.current_thread().name)
        if len(looks) == 2:
            twice.set()

    def work() -> None:
        with call_every(look, 0.001):
            assert twice.wait(60)
            raise InterruptedError

    with pytest.raises(InterruptedError):
        work()
    count = len(looks)
    assert threading.current_thread().name not in looks
    assert not [each for each in threading.enumerate() if each.name in looks]
    assert len(looks) == count
