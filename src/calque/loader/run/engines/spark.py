"""The Spark engine: a plan's tasks on executors, rows parsed and written inside them.

Rows do not pass through the JVM unless the statement transforms them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from calque.loader.model.file_formats import FormatOptions
from calque.loader.model.outcome import TaskResult
from calque.loader.model.plan import Advance, OnAdvance, Transformation, WritePlan, WriteTask
from calque.loader.model.staged_file import StagedFile
from calque.loader.run.engines.run_plan import run_plan
from calque.loader.run.engines.sample import sample_rows
from calque.loader.run.engines.worker_pool import WorkerPool
from calque.loader.run.formats.registry import CRASH_PRONE
from calque.loader.run.infer import infer_schema
from calque.loader.run.task import run_task
from calque.loader.run.task_output import TaskOutput
from calque.loader.run.workers.malloc import keep_freed_pages
from calque.spark.job_errors import map_job_errors
from calque.spark.session import SparkOptions, context, session
from calque.spark.tasks import Watch, cores_of, run_tasks

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession


class SparkEngine:
    """Runs plans on the caller's session, or on one that starts with the first plan.

    ``task_bytes``: how much one task reads, where the engine's own choice does not suit.
    """

    name = "spark"

    def __init__(
        self, spark: SparkSession | SparkOptions | None = None, task_bytes: int | None = None
    ) -> None:
        self._given = spark
        self._task_bytes = task_bytes

    def run(self, plan: WritePlan, advance: OnAdvance | None = None) -> Iterator[TaskResult]:
        if plan.transformation is not None:
            from calque.loader.run.transform.run_transformation import run_transformation

            return run_transformation(self._session(), plan, advance)

        def run(bare: WritePlan, tasks: Sequence[WriteTask]) -> Iterator[TaskOutput]:
            return self._run_on_executors(bare, tasks, advance)

        return run_plan(plan, self._cores(), run, self._task_bytes)

    def infer(
        self,
        files: Sequence[StagedFile],
        format: FormatOptions,
        source_options: Mapping[str, object] | None = None,
        *,
        skip_bad: bool = False,
        transformation: Transformation | None = None,
    ) -> pa.Schema:
        if transformation is None:
            return infer_schema(files, format, source_options, skip_bad=skip_bad).schema
        from calque.loader.run.transform.run_transformation import schema_of_select

        raw = infer_schema(files, format, source_options, skip_bad=skip_bad, raw=True).schema
        return schema_of_select(self._session(), transformation, raw, format)

    def sample(self, plan: WritePlan, rows: int) -> pa.Table:
        if plan.transformation is None:
            return sample_rows(plan, rows).rows
        from calque.loader.run.transform.run_transformation import sample_transformation

        return sample_transformation(self._session(), plan, rows)

    def close(self) -> None:
        """A session given by the caller is theirs; one started here ends with the process."""

    def _session(self) -> SparkSession:
        given = self._given
        if isinstance(given, SparkOptions):
            return session(options=given)
        return session(given)

    def _context(self) -> SparkContext:
        given = self._given
        if isinstance(given, SparkOptions):
            return context(options=given)
        return context(given)

    def _cores(self) -> int:
        with map_job_errors():
            return cores_of(self._context())

    def _run_on_executors(
        self, plan: WritePlan, tasks: Sequence[WriteTask], advance: OnAdvance | None
    ) -> Iterator[TaskOutput]:
        about = f"calque load {plan.load_id}"
        # The mark keeps names apart when one load runs two jobs: attempt ids begin anew in each
        # Spark application, and a load may be taken up by another one.
        work = _TaskRunner(plan, uuid.uuid4().hex[:6])
        watch = None
        if advance is not None:
            watch = Watch(_counts_of, lambda counts: advance(Advance(*counts)), (0, 0, 0))
        with map_job_errors():
            outputs = run_tasks(self._context(), list(tasks), work, about=about, watch=watch)
        yield from outputs


def _counts_of(output: TaskOutput) -> tuple[int, int, int]:
    done = output.advance
    return done.files, done.rows, done.bytes


@dataclass(frozen=True, slots=True)
class _TaskRunner:
    """What travels to the executors: the plan, without a secret in it."""

    plan: WritePlan
    mark: str

    def __call__(self, task: WriteTask, attempt: str) -> TaskOutput:
        if self.plan.format.kind in CRASH_PRONE:
            # Spark would try the whole task again, meet the same file, and fail the job.
            (output,) = WorkerPool(self.plan, 1).run([task])
            return output
        keep_freed_pages()
        return run_task(self.plan, task, f"{self.mark}{attempt}")
