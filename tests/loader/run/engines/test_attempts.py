"""Tasks that fail, are retried, run twice or lose their process: every row counts once."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

import tests.loader.run.engines.test_attempts as this_module
from calque.errors import Unavailable
from calque.loader.model.plan import WritePlan, WriteTask
from calque.loader.run.cut_into_tasks import cut
from calque.loader.run.engines.local import LocalEngine
from calque.loader.run.piece_joiner import PieceJoiner
from calque.loader.run.task import run_task
from calque.loader.run.task_output import TaskOutput
from calque.loader.run.workers.process import WorkerDied
from calque.spark.tasks import run_tasks
from tests.children import children_running
from tests.loader.run.conftest import World, data_files, outcomes

WORKER = "calque.loader.run.workers.main"


class Flaky:
    """Does a task's work and then, at its first attempt, dies in one way or another."""

    def __init__(self, plan: WritePlan, marks: str, way: str) -> None:
        self.plan = plan
        self.marks = marks
        self.way = way

    def __call__(self, task: WriteTask, attempt: str) -> TaskOutput:
        output = run_task(self.plan, task, attempt)
        mark = f"{self.marks}/{task.number}"
        try:
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return output
        if self.way == "error":
            raise Unavailable("the storage went away for a moment")
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("killed")


def staged(world: World, count: int) -> WritePlan:
    files = [world.put(f"{n}.csv", b"%d,x\n" % n * 1000) for n in range(count)]
    return world.plan(files)


@pytest.mark.parametrize("way", ["error", "kill"])
def test_spark_retries(world: World, spark: Any, tmp_path: Path, way: str) -> None:
    """A task that failed after writing is run again; its first data file is an orphan."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(this_module)
    plan = staged(world, 4)
    marks = tmp_path / "marks"
    marks.mkdir()
    tasks = cut(plan, 2, 4000)
    work = Flaky(replace(plan, tasks=()), str(marks), way)
    outputs = run_tasks(spark.sparkContext, list(tasks), work, about="flaky")
    joiner = PieceJoiner(plan, {})
    results = [joiner.add(output) for output in outputs]
    assert len(world.rows(results)) == 4000
    assert set(outcomes(results)) == {f"{n}.csv" for n in range(4)}
    written = {path.name for path in world.table.iterdir()}
    counted = {file.path for file in data_files(results)}
    assert counted < written
    assert len(written) == 2 * len(counted)


def test_local_worker_killed(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker process that is killed in a task is replaced, and the task is run again."""
    monkeypatch.setenv("CALQUE_FAULT", "task.read:pause=1.5")
    plan = staged(world, 4)
    killed: list[int] = []
    over = threading.Event()

    def kill_one() -> None:
        """One that stands in a task; other children may come and go while they are looked at."""
        while not killed and not over.wait(0.05):
            for child in children_running(WORKER):
                with suppress(psutil.Error):
                    if child.status() == psutil.STATUS_STOPPED:
                        child.kill()
                        killed.append(child.pid)
                        break

    killer = threading.Thread(target=kill_one)
    killer.start()
    try:
        results = list(LocalEngine(2, task_bytes=8000).run(plan))
    finally:
        over.set()
        killer.join()
    assert len(killed) == 1
    assert len(world.rows(results)) == 4000
    assert len(outcomes(results)) == 4


def test_local_gives_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task that kills every worker ends the load with an error, not in a loop."""
    monkeypatch.setenv("CALQUE_FAULT", "task.written:kill")
    with pytest.raises(WorkerDied, match="task 0"):
        list(LocalEngine(2, task_bytes=8000).run(staged(world, 1)))


def test_closing_stops_workers(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing the results early ends the worker processes."""
    monkeypatch.setenv("CALQUE_FAULT", "task.written@2:pause=60")
    results = LocalEngine(2, task_bytes=4000).run(staged(world, 6))
    next(results)
    results.close()  # type: ignore[attr-defined]
    assert children_running(WORKER) == []
