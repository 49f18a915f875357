"""How work becomes Spark tasks: one item, one task; only what winners return counts.

Items and the function travel to the executors, results come back by ``collect``: of a task that
failed, was run twice or lost its executor, exactly one result arrives. Credentials never travel;
an executor finds its own. The executors need calque installed, the version of the driver.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from pyspark import SparkContext

Item = TypeVar("Item")
Result = TypeVar("Result")
Counts = tuple[int, ...]

_DESCRIPTION = "spark.job.description"
_GROUP = "spark.jobGroup.id"
_LOOK_SECONDS = 0.2
"""How often progress is told: a bar that moves five times a second looks alive."""


@dataclass(frozen=True, slots=True)
class Watch(Generic[Result]):
    """How far a job has come: ``count`` says in the executor what a result stands for, ``tell``
    hears in the caller's thread what all finished tasks stand for together."""

    count: Callable[[Result], Counts]
    tell: Callable[[Counts], None]
    start: Counts = (0,)


def run_tasks(
    spark: SparkContext,
    items: Sequence[Item],
    work: Callable[[Item, str], Result],
    *,
    about: str,
    watch: Watch[Result] | None = None,
) -> list[Result]:
    """Every item's result, in the order of the items.

    ``work`` gets the item and a name for the attempt that no other attempt has. ``about`` is what
    Spark's own pages call the job. Counts of ``watch`` are for showing alone: of a task that is run
    twice they may come from either run, results never.
    """
    if not items:
        return []
    with local_property(spark, _DESCRIPTION, about):
        spread = spark.parallelize(items, len(items))
        if watch is None:
            return list(spread.mapPartitions(_TaskAttempt(work)).collect())
        from calque.spark.counter import counter

        counts = counter(spark, watch.start)
        job = spread.mapPartitions(_TaskAttempt(work, watch.count, counts))
        return run_watched(lambda: list(job.collect()), lambda: watch.tell(counts.value))


def run_watched(job: Callable[[], Result], report: Callable[[], None]) -> Result:
    """The job's result. It runs in a thread with this one's Spark properties; meanwhile, and once
    more at the end, ``report`` is called here."""
    from pyspark import InheritableThread

    results: list[Result] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(job())
        except BaseException as error:
            errors.append(error)

    thread: threading.Thread = InheritableThread(target=run, name="calque-job", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_LOOK_SECONDS)
        report()
    if errors:
        raise errors[0]
    return results[0]


@contextmanager
def local_property(spark: SparkContext, name: str, value: str) -> Iterator[None]:
    """Set a property of the jobs that this thread starts, and set it back."""
    before = spark.getLocalProperty(name)
    spark.setLocalProperty(name, value)
    try:
        yield
    finally:
        # Nothing, where nothing was: jobs of a group named "" would be of a group all the same.
        spark.setLocalProperty(name, before)  # type: ignore[arg-type]


@contextmanager
def job_group(spark: SparkContext, name: str) -> Iterator[None]:
    """Jobs of this thread belong to a group, by which :func:`tasks_done` finds them."""
    with local_property(spark, _GROUP, name):
        yield


def tasks_done(spark: SparkContext, group: str) -> tuple[int, int]:
    """Of the newest job of a group: tasks that have ended, and tasks in all."""
    tracker = spark.statusTracker()
    jobs = tracker.getJobIdsForGroup(group)
    info = tracker.getJobInfo(max(jobs)) if jobs else None
    stages = [tracker.getStageInfo(one) for one in info.stageIds] if info is not None else []
    known = [stage for stage in stages if stage is not None]
    return sum(one.numCompletedTasks for one in known), sum(one.numTasks for one in known)


class _TaskAttempt(Generic[Item, Result]):
    """Runs in the executor: names the attempt, does the work, counts what came of it."""

    def __init__(
        self,
        work: Callable[[Item, str], Result],
        count: Callable[[Result], Counts] | None = None,
        counts: Any = None,
    ) -> None:
        self._work = work
        self._count = count
        self._counts = counts

    def __call__(self, items: Iterable[Item]) -> Iterator[Result]:
        from pyspark import TaskContext

        context = TaskContext.get()
        attempt = f"s{context.taskAttemptId()}" if context is not None else "s"
        for item in items:
            result = self._work(item, attempt)
            if self._count is not None:
                self._counts.add(self._count(result))
            yield result


def cores_of(spark: SparkContext) -> int:
    """How many tasks run side by side."""
    return int(spark.defaultParallelism)
