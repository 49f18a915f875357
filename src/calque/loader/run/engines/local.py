"""The local engine: the same tasks in plain processes, for loads that need no cluster.

Up to ``IN_PROCESS`` bytes nothing is started at all.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence

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
from calque.values import MIB

IN_PROCESS = 32 * MIB
"""Up to here a worker process takes longer to start than it saves."""


class LocalEngine:
    """Runs plans on this machine; as many worker processes as there are cores.

    ``task_bytes``: how much one task reads, where the engine's own choice does not suit.
    """

    name = "local"

    def __init__(self, cores: int | None = None, task_bytes: int | None = None) -> None:
        self._cores = cores or len(os.sched_getaffinity(0))
        self._task_bytes = task_bytes

    def run(self, plan: WritePlan, advance: OnAdvance | None = None) -> Iterator[TaskResult]:
        small = plan.bytes <= IN_PROCESS and self._task_bytes is None
        safe = plan.format.kind not in CRASH_PRONE
        run_tasks = (
            _run_in_process if safe and (small or self._cores == 1) else self._run_in_workers
        )
        progress = _ProgressSum(advance)

        def run(bare: WritePlan, tasks: Sequence[WriteTask]) -> Iterator[TaskOutput]:
            return run_tasks(bare, tasks, progress.add)

        return run_plan(plan, self._cores, run, self._task_bytes)

    def infer(
        self,
        files: Sequence[StagedFile],
        format: FormatOptions,
        source_options: Mapping[str, object] | None = None,
        *,
        skip_bad: bool = False,
        transformation: Transformation | None = None,
    ) -> pa.Schema:
        assert transformation is None, "SQL is Spark's"
        return infer_schema(files, format, source_options, skip_bad=skip_bad).schema

    def sample(self, plan: WritePlan, rows: int) -> pa.Table:
        return sample_rows(plan, rows).rows

    def close(self) -> None:
        """Workers end with the run that started them."""

    def _run_in_workers(
        self, plan: WritePlan, tasks: Sequence[WriteTask], add: Callable[[Advance], None]
    ) -> Iterator[TaskOutput]:
        for output in WorkerPool(plan, min(self._cores, len(tasks))).run(tasks):
            add(output.advance)
            yield output


class _ProgressSum:
    """Adds up what was done and tells it."""

    def __init__(self, tell: OnAdvance | None) -> None:
        self._tell = tell
        self._sum = Advance()

    def add(self, more: Advance) -> None:
        self._sum += more
        if self._tell is not None:
            self._tell(self._sum)


def _run_in_process(
    plan: WritePlan, tasks: Sequence[WriteTask], add: Callable[[Advance], None]
) -> Iterator[TaskOutput]:
    for task in tasks:
        yield run_task(plan, task, uuid.uuid4().hex[:8], lambda piece: add(piece.advance))
