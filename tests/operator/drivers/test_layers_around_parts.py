"""Layers that stand around every part: retry and a shared limit."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from calque.errors import Unavailable
from calque.operator import Operator
from calque.operator.layers import ConcurrencyLimit, Retry
from tests.operator.drivers.conftest import PART, PARTS, SIZE
from tests.operator.recorder import Hook, Recorder, failing

DATA = bytes(number % 251 for number in range(SIZE))


def opened(*layers: object) -> Operator:
    op = Operator.from_uri("memory://", layers=layers, threshold=50, part_size=PART)  # type: ignore[arg-type]
    op.write("from", DATA)
    return op


def test_a_part_that_fails_twice_is_counted_once() -> None:
    """Repeated until it works; steps sum up to the size, the bytes are right."""
    seen = Recorder()
    broken = Hook("copy_part", failing(Unavailable("busy"), 3, 4, 5))
    op = opened(Retry(first=0.001, longest=0.01), seen, broken)
    copier = op.copier("from", "to", concurrent=1)
    assert sum(copier) == SIZE
    assert seen.count("copy_part") == PARTS + 3
    assert op.read("to") == DATA


def test_a_part_that_keeps_failing_is_given_up_and_cleaned() -> None:
    """After all attempts the last error is raised, in-flight parts end, no upload is left."""
    seen = Recorder()
    broken = Hook("copy_part", failing(Unavailable("down"), *range(5, 999)))
    op = opened(Retry(attempts=3, first=0.001, longest=0.01), seen, broken)
    with pytest.raises(Unavailable, match="down"):
        op.copy("from", "to", concurrent=2)
    assert seen.flying.total() == 0
    assert list(op.leftovers()) == []
    assert not op.exists("to")


def test_one_limit_holds_for_objects_and_parts_together() -> None:
    """Many copies of many parts each: never more requests at once than the limit, and it is used
    up while there is work."""
    seen = Recorder()
    gate = threading.Barrier(3)
    first = Hook("copy_part", lambda number: number <= 3 and gate.wait(30) and None)
    op = opened(ConcurrencyLimit(3), seen, first)
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(op.copy, "from", f"to{n}", concurrent=8) for n in range(4)]:
            assert done.result().size == SIZE
    assert seen.most["copy_part"] == 3
    assert max(seen.most.values()) == 3
