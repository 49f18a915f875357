"""A few worker processes: tasks go to whoever is free, and one that dies is replaced."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path
from signal import SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV
from typing import cast

from calque.errors import CalqueError, Unexpected
from calque.loader.model.plan import WritePlan, WriteTask
from calque.loader.run.task import crash_outcome
from calque.loader.run.task_output import TaskOutput

MOST_ATTEMPTS = 4
"""As often as Spark tries a task on a cluster: both engines give up at the same point."""
MOST_CRASHES = 2
"""After so many over one file it is the file: one crash may have another cause."""


class WorkerDied(Unexpected):
    """A worker process ended in the middle of a task."""

    retryable = True


class WorkerCrashed(WorkerDied):
    """It was brought down by native code: a library, over a file that it was given."""


_CRASH_SIGNALS = {-number for number in (SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL)}


class Worker:
    """One process; takes one task at a time."""

    def __init__(self, plan: WritePlan) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "calque.loader.run.engines.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": _import_path()},
        )
        self._send(plan)

    @property
    def pid(self) -> int:
        return self._process.pid

    def run(self, task: WriteTask, attempt: str) -> TaskOutput:
        """The task's output; raises what the task raised, or WorkerDied."""
        try:
            self._send((task, attempt))
            assert self._process.stdout is not None
            good, answer = pickle.load(self._process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError) as error:
            code = self._process.wait()
            died = WorkerCrashed if code in _CRASH_SIGNALS else WorkerDied
            raise died(f"a worker process ended with {code} in task {task.number}") from error
        if good:
            return cast(TaskOutput, answer)
        raise answer

    def stop(self) -> None:
        """End the process, whatever it does."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def _send(self, message: object) -> None:
        assert self._process.stdin is not None
        pickle.dump(message, self._process.stdin, pickle.HIGHEST_PROTOCOL)
        self._process.stdin.flush()


class WorkerPool:
    """Runs tasks on several workers; a task that fails in a curable way is tried again."""

    def __init__(self, plan: WritePlan, size: int) -> None:
        self._plan = plan
        self._size = size
        self._idle: list[Worker] = []
        self._all: list[Worker] = []
        self._stopping = False

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
        worker = self._idle.pop() if self._idle else self._start_worker()
        try:
            output = worker.run(task, uuid.uuid4().hex[:8])
        except WorkerDied:
            worker.stop()  # it is not taken up again: the next task starts another
            raise
        except BaseException:
            self._idle.append(worker)
            raise
        self._idle.append(worker)
        return output

    def _start_worker(self) -> Worker:
        worker = Worker(self._plan)
        self._all.append(worker)
        return worker


def _import_path() -> str:
    """Workers must find the very calque that is running, however it was found."""
    import calque

    home = str(Path(calque.__file__).parents[1])
    given = os.environ.get("PYTHONPATH", "")
    return f"{home}{os.pathsep}{given}" if given else home
