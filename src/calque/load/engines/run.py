"""What every engine does around its tasks: cut the plan, join pieces, read torn files whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from calque.load.cut import cut
from calque.load.joining import Joiner
from calque.load.manifest import TaskResult
from calque.load.task import TaskOutput
from calque.load.work import Piece, WritePlan, WriteTask

RunTasks = Callable[[WritePlan, Sequence[WriteTask]], Iterator[TaskOutput]]


def run_plan(
    plan: WritePlan, cores: int, run_tasks: RunTasks, task_bytes: int | None = None
) -> Iterator[TaskResult]:
    """Results as tasks end. ``run_tasks`` gives each task's output exactly once."""
    tasks = cut(plan, cores, task_bytes)
    counts = Counter(piece.file.location for task in tasks for piece in task.pieces)
    joiner = Joiner(plan, counts)
    bare = replace(plan, tasks=())
    for output in run_tasks(bare, tasks):
        yield joiner.add(output)
    if not joiner.torn:
        return
    torn = set(joiner.torn)
    files = [file for file in plan.files if file.location in torn]
    again = [WriteTask(len(tasks) + n, (Piece(file),)) for n, file in enumerate(files)]
    whole = Joiner(plan, {})
    for output in run_tasks(bare, again):
        yield whole.add(output)
