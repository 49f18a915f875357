"""What every engine does around its tasks: cut the plan, join pieces, reread misaligned ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from calque.loader.model.outcome import TaskResult
from calque.loader.model.plan import WritePlan, WriteTask
from calque.loader.run.cut_into_tasks import cut
from calque.loader.run.piece_joiner import PieceJoiner
from calque.loader.run.task_output import TaskOutput

RunTasks = Callable[[WritePlan, Sequence[WriteTask]], Iterator[TaskOutput]]


def run_plan(
    plan: WritePlan, cores: int, run_tasks: RunTasks, task_bytes: int | None = None
) -> Iterator[TaskResult]:
    """Results as tasks end. ``run_tasks`` gives each task's output exactly once."""
    tasks: Sequence[WriteTask] = cut(plan, cores, task_bytes)
    pieces = {(piece.file.location, piece.offset): piece for t in tasks for piece in t.pieces}
    joiner = PieceJoiner(plan, Counter(location for location, _ in pieces))
    bare = replace(plan, tasks=())
    used = 0
    while tasks:
        for output in run_tasks(bare, tasks):
            yield joiner.add(output)
        used += len(tasks)
        misaligned, joiner.misaligned = joiner.misaligned, []
        again = [replace(pieces[one.location, one.offset], begin=one.begin) for one in misaligned]
        tasks = [WriteTask(used + number, (piece,)) for number, piece in enumerate(again)]
