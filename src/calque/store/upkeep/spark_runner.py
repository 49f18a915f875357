"""The same scan as Spark tasks: each reads its ranges by itself, rows never pass the JVM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from calque.spark.job_errors import map_job_errors
from calque.spark.session import SparkOptions, context
from calque.spark.tasks import cores_of, run_tasks
from calque.store.metabase.scan import Range, Snapshot, open_reader
from calque.store.upkeep.scan import RangeResult, ScanJob, scan_range

PER_CORE, MOST = 2, 40
"""Ranges of a job, for each core and in all. What a job finds is in the memory of the driver before
any of it is joined; and were more read side by side, it could not join as fast as they are."""


class SparkRunner:
    """Runs a scan on a cluster, or on the cores of this machine."""

    name = "spark"

    def __init__(self, options: SparkOptions | None = None) -> None:
        self._options = options

    def run(
        self, snapshot: Snapshot, job: ScanJob, ranges: Sequence[Range]
    ) -> Iterator[RangeResult]:
        spark = context(options=self._options)
        at_once = min(PER_CORE * cores_of(spark), MOST)
        for first in range(0, len(ranges), at_once):
            with map_job_errors():
                some = run_tasks(
                    spark,
                    list(ranges[first : first + at_once]),
                    _Task(job),
                    about=f"calque scan {snapshot.name}",
                )
            while some:  # in their order, and none is kept once it was joined
                yield some.pop(0)


@dataclass(frozen=True, slots=True)
class _Task:
    """What travels to the executors."""

    job: ScanJob

    def __call__(self, wanted: Range, _attempt: str) -> RangeResult:
        reader = open_reader(self.job.source)
        try:
            return scan_range(reader, self.job, wanted)
        finally:
            reader.close()
