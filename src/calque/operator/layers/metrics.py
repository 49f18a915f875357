"""Metrics: how many requests of each verb, how many failed and how, how long they took."""

from __future__ import annotations

import bisect
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from calque.errors import CalqueError
from calque.operator.layers.chain import Call
from calque.operator.layers.clock import SYSTEM, Clock

T = TypeVar("T")

BOUNDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds of the latency histogram, in seconds; one more bucket takes what is slower."""


@dataclass(frozen=True, slots=True)
class VerbMetrics:
    """One verb's numbers. ``buckets`` counts requests up to each of BOUNDS, then the rest."""

    count: int
    errors: Mapping[str, int]
    seconds: float
    buckets: tuple[int, ...]

    @property
    def failed(self) -> int:
        return sum(self.errors.values())

    def quantile(self, share: float) -> float:
        """The upper bound of the bucket that holds this share of requests; 0 without any."""
        needed, seen = share * self.count, 0
        for bound, count in zip((*BOUNDS, float("inf")), self.buckets, strict=True):
            seen += count
            if seen >= needed and seen:
                return bound
        return 0.0


class Metrics:
    """A layer that counts; :meth:`snapshot` is data, :meth:`exposition` the text Prometheus reads.

    Stand it inside Retry to see every attempt, outside to see what the caller saw. Safe between
    threads. A pickled copy starts from zero in its new process.
    """

    def __init__(self, *, clock: Clock = SYSTEM) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._verbs: dict[str, _Tally] = {}

    def __call__(self, call: Call, proceed: Callable[[Call], T]) -> T:
        begun, failure = self._clock.now(), None
        try:
            return proceed(call)
        # Ctrl-C counts too: a request that was begun is in the numbers however it ended.
        except BaseException as error:
            failure = type(error).__name__ if isinstance(error, CalqueError) else "other"
            raise
        finally:
            self._count(call.verb, self._clock.now() - begun, failure)

    def _count(self, verb: str, seconds: float, failure: str | None) -> None:
        with self._lock:
            tally = self._verbs.setdefault(verb, _Tally())
            tally.count += 1
            tally.seconds += seconds
            tally.buckets[bisect.bisect_left(BOUNDS, seconds)] += 1
            if failure is not None:
                tally.errors[failure] += 1

    def snapshot(self) -> dict[str, VerbMetrics]:
        """The numbers so far, by verb."""
        with self._lock:
            return {
                verb: VerbMetrics(
                    tally.count, dict(tally.errors), tally.seconds, tuple(tally.buckets)
                )
                for verb, tally in sorted(self._verbs.items())
            }

    def exposition(self) -> str:
        """The numbers in Prometheus' text format."""
        return "\n".join(_lines(self.snapshot())) + "\n"

    def __reduce__(self) -> tuple[Any, ...]:
        return _fresh, (self._clock,)


class _Tally:
    def __init__(self) -> None:
        self.count = 0
        self.errors: Counter[str] = Counter()
        self.seconds = 0.0
        self.buckets = [0] * (len(BOUNDS) + 1)


def _fresh(clock: Clock) -> Metrics:
    return Metrics(clock=clock)


def _lines(snapshot: Mapping[str, VerbMetrics]) -> Iterator[str]:
    yield "# HELP calque_errors_total Requests that failed, by verb and kind."
    yield "# TYPE calque_errors_total counter"
    for verb, one in snapshot.items():
        for kind, count in sorted(one.errors.items()):
            yield f'calque_errors_total{{verb="{verb}",kind="{kind}"}} {count}'
    yield "# HELP calque_request_seconds How long requests took, by verb."
    yield "# TYPE calque_request_seconds histogram"
    for verb, one in snapshot.items():
        seen = 0
        for bound, count in zip((*BOUNDS, "+Inf"), one.buckets, strict=True):
            seen += count
            yield f'calque_request_seconds_bucket{{verb="{verb}",le="{bound}"}} {seen}'
        yield f'calque_request_seconds_sum{{verb="{verb}"}} {one.seconds:.6f}'
        yield f'calque_request_seconds_count{{verb="{verb}"}} {one.count}'
