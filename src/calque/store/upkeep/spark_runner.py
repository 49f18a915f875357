"""The same scan as Spark tasks: each reads its ranges by itself, rows never pass the JVM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calque.spark.job_errors import map_job_errors
from calque.spark.session import SparkOptions, context
from calque.spark.tasks import run_tasks
from calque.store.metabase.scan import Range, Snapshot, open_reader
from calque.store.upkeep.scan import RangeResult, ScanJob, scan_range


class SparkRunner:
    """Runs a scan on a cluster, or on the cores of this machine."""

    name = "spark"

    def __init__(self, options: SparkOptions | None = None) -> None:
        self._options = options

    def run(
        self, snapshot: Snapshot, job: ScanJob, ranges: Sequence[Range]
    ) -> Sequence[RangeResult]:
        with map_job_errors():
            return run_tasks(
                context(options=self._options),
                list(ranges),
                _Task(job),
                about=f"calque scan {snapshot.name}",
            )


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
