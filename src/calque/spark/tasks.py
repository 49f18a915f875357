"""How work becomes Spark tasks: one item, one task; only what winners return counts.

Items and the function travel to the executors, results come back by ``collect``: of a task that
failed, was run twice or lost its executor, exactly one result arrives. Credentials never travel;
an executor finds its own. The executors need calque installed, the version of the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from pyspark import SparkContext

Item = TypeVar("Item")
Result = TypeVar("Result")

_DESCRIPTION = "spark.job.description"


def run_tasks(
    spark: SparkContext,
    items: Sequence[Item],
    work: Callable[[Item, str], Result],
    *,
    about: str,
) -> list[Result]:
    """Every item's result, in the order of the items.

    ``work`` gets the item and a name for the attempt that no other attempt has. ``about`` is what
    Spark's own pages call the job.
    """
    if not items:
        return []
    before = spark.getLocalProperty(_DESCRIPTION)
    spark.setLocalProperty(_DESCRIPTION, about)
    try:
        spread = spark.parallelize(items, len(items))
        return list(spread.mapPartitions(_Attempt(work)).collect())
    finally:
        spark.setLocalProperty(_DESCRIPTION, before or "")


class _Attempt(Generic[Item, Result]):
    """Runs in the executor: names the attempt and does the work."""

    def __init__(self, work: Callable[[Item, str], Result]) -> None:
        self._work = work

    def __call__(self, items: Iterable[Item]) -> Iterator[Result]:
        from pyspark import TaskContext

        context = TaskContext.get()
        attempt = f"s{context.taskAttemptId()}" if context is not None else "s"
        for item in items:
            yield self._work(item, attempt)


def cores_of(spark: SparkContext) -> int:
    """How many tasks run side by side."""
    return int(spark.defaultParallelism)
