"""A concurrency limit bounds all operators that carry it, together."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from calque.errors import Aborted, InvalidInput, TimedOut, Unavailable
from calque.operator import Operator
from calque.operator.layers import Call, Chain, ConcurrencyLimit
from tests.operator.layers.conftest import CALL
from tests.operator.recorder import Recorder


class Meeting:
    """Requests that wait until so many are inside at once (or it is sure that no more come)."""

    def __init__(self, together: int) -> None:
        self._lock = threading.Condition()
        self._together = together
        self.inside = self.most = 0

    def __call__(self, _: Call) -> None:
        with self._lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
            self._lock.notify_all()
            self._lock.wait_for(lambda: self.most >= self._together, timeout=60)
        with self._lock:
            self.inside -= 1


def test_exactly_so_many_at_once() -> None:
    """As many as allowed run together, over two chains that share the limit, and never more."""
    limit, meeting = ConcurrencyLimit(3), Meeting(3)
    chains = [Chain((limit,)), Chain((limit,))]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: chains[number % 2].run(CALL, meeting), range(16)))
    assert meeting.most == 3
    assert limit.in_flight == 0


def test_objects_and_parts_share_it() -> None:
    """Several copies, each with many parts in flight, stay within one limit together."""
    limit, seen = ConcurrencyLimit(2), Recorder()
    op = Operator.from_uri("memory://", layers=(limit, seen), threshold=10, part_size=10)
    for number in range(4):
        op.write(f"from{number}", b"x" * 200)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: op.copy(f"from{n}", f"to{n}", concurrent=8), range(4)))
    assert seen.count("copy_part") == 80
    assert max(seen.most.values()) <= 2


def test_a_failed_request_gives_its_place_back() -> None:
    """Errors do not use places up."""

    def fail(_: Call) -> None:
        raise Unavailable("no")

    limit = ConcurrencyLimit(1)
    for _ in range(3):
        with pytest.raises(Unavailable):
            Chain((limit,)).run(CALL, fail)
    assert limit.in_flight == 0


def test_a_request_inside_a_request_does_not_wait_for_itself() -> None:
    """A write whose bytes come out of reads through the same limit goes on with one place."""
    limit = ConcurrencyLimit(1)
    chain = Chain((limit,))
    inner: Callable[[Call], str] = lambda _: "inner"  # noqa: E731
    assert chain.run(CALL, lambda _: chain.run(CALL, inner)) == "inner"
    assert limit.in_flight == 0


def test_a_stream_between_two_services_through_one_place(tmp_path: object) -> None:
    """Copying from one service into another with a limit of one ends."""
    limit = ConcurrencyLimit(1)
    one = Operator.from_uri("memory://", layers=(limit,))
    other = Operator.from_uri(str(tmp_path), layers=(limit,))
    one.write("from", b"x" * 3_000_000)
    one.copy("from", "to", into=other, stream=True)
    assert other.stat("to").size == 3_000_000


def test_copies_of_a_limit_are_one_limit_in_a_process() -> None:
    """Operators that were pickled apart share it again where they meet."""
    limit, meeting = ConcurrencyLimit(2), Meeting(2)
    twins = [pickle.loads(pickle.dumps(limit)) for _ in range(3)]
    chains = [Chain((each,)) for each in (limit, *twins)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: chains[number % 4].run(CALL, meeting), range(12)))
    assert meeting.most == 2


def test_none_is_no_limit() -> None:
    """Zero places would wait for ever."""
    with pytest.raises(InvalidInput):
        ConcurrencyLimit(0)


def test_waiting_for_a_place_ends_with_the_call() -> None:
    """Who is stopped, or late, does not wait for a place that others hold."""
    limit = ConcurrencyLimit(1)
    entered, done = threading.Event(), threading.Event()

    def hold(_: Call) -> None:
        entered.set()
        done.wait(60)

    holder = threading.Thread(target=lambda: limit(CALL, hold))
    holder.start()
    try:
        assert entered.wait(60)
        with pytest.raises(Aborted):
            limit(replace(CALL, stopped=lambda: True), lambda _: None)
        with pytest.raises(TimedOut):
            limit(replace(CALL, deadline=time.monotonic() + 0.1), lambda _: None)
    finally:
        done.set()
        holder.join()
    assert limit.in_flight == 0
