"""Counts that tasks send to the driver as they end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.accumulators import Accumulator, AccumulatorParam

if TYPE_CHECKING:
    from pyspark import SparkContext

Counts = tuple[int, ...]


class Sums(AccumulatorParam[Counts]):
    """Counts are added place by place."""

    def zero(self, value: Counts) -> Counts:
        return (0,) * len(value)

    def addInPlace(self, value1: Counts, value2: Counts) -> Counts:  # noqa: N802 - pyspark's
        return tuple(left + right for left, right in zip(value1, value2, strict=True))


def counter(context: SparkContext, start: Counts) -> Accumulator[Counts]:
    """A counter that executors add to; the driver reads its ``value`` at any time."""
    return context.accumulator(start, Sums())
