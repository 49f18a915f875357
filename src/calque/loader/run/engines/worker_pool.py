"""A few worker processes: tasks go to whoever is free, and one that dies is replaced."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial

from calque.errors import CalqueError
from calque.loader.model.plan import WritePlan, WriteTask
from calque.loader.run.task import crash_outcome, run_task
from calque.loader.run.task_output import TaskOutput
from calque.loader.run.workers.process import WorkerCrashed, WorkerDied, WorkerProcess

MOST_ATTEMPTS = 4
"""As often as Spark tries a task on a cluster: both engines give up at the same point."""


MOST_CRASHES = 2
"""After so many over one file it is the file: one crash may have another cause."""


class WorkerPool:
    """Runs tasks on several workers; a task that fails in a curable way is tried again."""

    def __init__(self, plan: WritePlan, size: int) -> None:
        self._plan = plan
        self._size = size
        self._idle: list[WorkerProcess[TaskOutput]] = []
        self._all: list[WorkerProcess[TaskOutput]] = []
        self._stopping = False
        self._lock = threading.Lock()
        """Over the three above: who ends the workers sees every one that was started."""

    def run(self, tasks: Sequence[WriteTask]) -> Iterator[TaskOutput]:
        """Outputs as they come; closing the iterator ends the workers."""
        with ThreadPoolExecutor(self._size, thread_name_prefix="worker-pool") as threads:
            pending: set[Future[TaskOutput]] = {threads.submit(self._run_task, t) for t in tasks}
            try:
                while pending:
                    done, pending = wait(pending, return_when=FIRST_COMPLETED)
                    for future in done:
                        yield future.result()
            finally:
                # First the flag: a thread whose worker is ended below must not start another.
                with self._lock:
                    self._stopping = True
                for future in pending:
                    future.cancel()
                for worker in self._all:
                    worker.stop()

    def _run_task(self, task: WriteTask) -> TaskOutput:
        crashes = 0
        for attempt in range(MOST_ATTEMPTS):
            try:
                return self._try_task(task)
            except WorkerCrashed as error:
                crashes += 1
                if self._stopping:
                    raise
                # Nobody knows over which of its files the process went down: each gets its own.
                if len(task.pieces) > 1:
                    return self._run_one_by_one(task)
                if crashes == MOST_CRASHES:
                    return TaskOutput(task.number, (), (crash_outcome(task.pieces[0], error),))
            except CalqueError as error:
                if not error.retryable or attempt == MOST_ATTEMPTS - 1 or self._stopping:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def _run_one_by_one(self, task: WriteTask) -> TaskOutput:
        """One of the files brought a worker down: let it bring down nothing but itself."""
        outputs = [self._run_task(replace(task, pieces=(piece,))) for piece in task.pieces]
        files = tuple(file for output in outputs for file in output.data_files)
        return TaskOutput(
            task.number, files, tuple(piece for output in outputs for piece in output.pieces)
        )

    def _try_task(self, task: WriteTask) -> TaskOutput:
        worker = self._take_worker(task)
        try:
            output = worker.run(task, uuid.uuid4().hex[:8], about=f"task {task.number}")
        except WorkerDied:
            worker.stop()  # it is not taken up again: the next task starts another
            raise
        except BaseException:
            self._idle.append(worker)
            raise
        self._idle.append(worker)
        return output

    def _take_worker(self, task: WriteTask) -> WorkerProcess[TaskOutput]:
        with self._lock:
            if self._stopping:
                raise WorkerDied(f"the load was ended before task {task.number}")
            if self._idle:
                return self._idle.pop()
            worker = WorkerProcess(partial(run_task, self._plan))
            self._all.append(worker)
            return worker
