"""Trees on Spark: ranges of keys become tasks, and nothing but ranges, rows and words travels.

A task gets a range and the request as it stands in a journal: no secret is in it, so credentials
are found where the task runs. It lists its range on both sides, copies up to some pages of it by
the same code as threads do, and returns the rows of what it did and the ranges that are left, cut
where its pages say. The driver holds ranges, never names; what a task returned counts once,
whatever became of its twins.
"""

from __future__ import annotations

import os
import secrets
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from calque._version import __version__
from calque.config import load_settings
from calque.errors import CalqueError, InvalidInput, Unsupported
from calque.operator.checkpoint import Checkpoint
from calque.operator.layers import ConcurrencyLimit, Metrics, Pace, default_layers
from calque.operator.service import HasService
from calque.operator.uri import text_of
from calque.spark.job_errors import map_job_errors
from calque.spark.session import SparkOptions, context
from calque.spark.tasks import cores_of, job_group, run_tasks
from calque.transfer.model import Decision, JobId, KeyRange, Row
from calque.transfer.plan.pairing import pair_again
from calque.transfer.plan.places import open_target
from calque.transfer.plan.plan import Trees
from calque.transfer.report.progress import TreeProgress
from calque.transfer.report.report import Collector, Report
from calque.transfer.request.tree_request import TreeRequest
from calque.transfer.run.copies.carry import Carrier
from calque.transfer.run.run_context import Shared
from calque.transfer.run.tree_job import TreeJob
from calque.values import Metadata

_TASKS_A_CORE = 4
_PIECES = 4
_PAGES = 10
"""Pages of a range that one task works on: seconds of work, and rows that fit into memory."""


@dataclass(frozen=True, slots=True)
class SpanTask:
    """What travels to an executor."""

    request: Mapping[str, Any]
    tree: int
    span: KeyRange
    pages: int
    concurrent: int
    pieces: int = 1
    """In how many ranges to cut what is left of it."""
    named: bool = False
    """Whether the source was found to be a folder that keeps its name."""
    left_out: tuple[str, ...] = ()
    """Paths of the range that the driver has acted on itself."""
    moved_before: bool = False
    """See :class:`Shared`."""


@dataclass(frozen=True, slots=True)
class SpanResult:
    """What comes back: rows of what was done, ranges that are left, and what went wrong besides."""

    rows: tuple[Row, ...]
    left: tuple[KeyRange, ...]
    listed: int
    listed_bytes: int
    requests: int
    dropped: Mapping[str, int] = field(default_factory=dict)
    moved: tuple[tuple[str, Metadata], ...] = ()
    """Sources of a move, which the driver deletes: this task may not be the one that counts."""
    huge: tuple[Decision, ...] = ()
    """Objects that are left to several tasks."""
    error: CalqueError | None = None


@dataclass(frozen=True, slots=True)
class PartsTask:
    """Some parts of one object, which travel in the same way."""

    request: Mapping[str, Any]
    tree: int
    checkpoint: str
    numbers: tuple[int, ...]
    concurrent: int
    named: bool


class Cluster:
    """A Spark context that tree copies run on."""

    def __init__(self, spark: object, *, shared_fs: bool = False) -> None:
        settings = load_settings().spark
        options = SparkOptions(settings.master, settings.memory, settings.settings)
        if isinstance(spark, str):
            options, spark = replace(options, master=spark), None
        self._context = context(spark, options)  # type: ignore[arg-type]
        self._shared_fs = shared_fs
        self._group = f"calque-trees-{secrets.token_hex(8)}"
        self._request: Mapping[str, Any] = {}
        self._named: list[bool] = []
        self._concurrent = 1

    def prepare(self, request: TreeRequest, trees: Sequence[Trees]) -> None:
        """Refuse what executors could not do, before any work: another version, files that only
        the driver sees."""
        for given in (*request.sources, request.target):
            if isinstance(given, HasService) or text_of(given).startswith("memory:"):
                raise InvalidInput(
                    f"{given!r} cannot be opened by executors",
                    hint="Name trees by their URIs: what an operator was opened with stays here.",
                )
        self._request = request.to_json()
        self._named = [each.named for each in trees]
        self._concurrent = max(1, request.options.concurrent // cores_of(self._context))
        self._refuse_other_versions()
        if not str(self._context.master).startswith("local"):
            for each in trees:
                for side in (each.source, each.target):
                    if side.is_local:
                        self._refuse_private(side.location().removeprefix("file://"))

    def run(
        self,
        tree: int,
        spans: Sequence[KeyRange],
        can_be_cut: bool,
        left_out: Collection[str] = (),
        moved_before: bool = False,
    ) -> tuple[list[SpanResult], list[KeyRange]]:
        """Work on some ranges at once; their results, and the ranges that had to wait."""
        cores = cores_of(self._context)
        now, later = spans[: cores * _TASKS_A_CORE], spans[cores * _TASKS_A_CORE :]
        # Few ranges are looked at first, for where to cut them; many are worked on.
        pages = 1 if len(spans) < cores else _PAGES
        if not can_be_cut:
            pages = 0  # such a side is listed as a whole, so it is copied as a whole
        tasks = [
            SpanTask(
                self._request,
                tree,
                span,
                pages,
                self._concurrent,
                max(_PIECES, -(-cores * _TASKS_A_CORE // len(now))),
                self._named[tree],
                tuple(path for path in left_out if span.holds(path)),
                moved_before,
            )
            for span in now
        ]
        with map_job_errors(), job_group(self._context, self._group):
            results = run_tasks(self._context, tasks, run_span, about="calque: trees")
        return results, list(later)

    def cancel(self) -> None:
        """Give up the tasks of this run, and of no other on the session."""
        self._context.cancelJobGroup(self._group)

    def copy_parts(self, tree: int, checkpoint: Checkpoint) -> None:
        """Bring the parts of an opened copy, by more tasks than cores."""
        size, part = (int((checkpoint.plan or {})[name]) for name in ("size", "part_size"))
        count = -(-size // part)
        each = max(1, -(-count // (cores_of(self._context) * _TASKS_A_CORE)))
        tasks = [
            PartsTask(
                self._request,
                tree,
                checkpoint.to_json(),
                tuple(range(first, min(first + each, count + 1))),
                self._concurrent,
                self._named[tree],
            )
            for first in range(1, count + 1, each)
        ]
        with map_job_errors(), job_group(self._context, self._group):
            run_tasks(self._context, tasks, run_parts, about="calque: parts of an object")

    def _refuse_other_versions(self) -> None:
        count = cores_of(self._context)
        with map_job_errors():  # which tells by name of executors that have none at all
            found = run_tasks(
                self._context, list(range(count)), tell_version, about="calque: versions"
            )
        other = sorted({version for version in found if version != __version__})
        if other:
            raise Unsupported(
                f"executors have calque {', '.join(other)}, this is {__version__}",
                hint="Install the same version everywhere.",
            )

    def _refuse_private(self, folder: str) -> None:
        if not self._shared_fs:
            raise InvalidInput(
                f"{folder} is a folder of this machine, which executors may not see",
                hint="If every one of them sees the same files there, say --shared-fs.",
            )
        above = Path(folder)
        while not above.is_dir() and above != above.parent:
            above = above.parent  # a target need not be there yet
        nonce = above / f".calque-{secrets.token_hex(12)}-nonce.tmp"
        place = nonce if os.access(above, os.W_OK) else above
        try:
            if place is nonce:
                nonce.write_text("calque")
            with map_job_errors():
                seen = run_tasks(
                    self._context,
                    list(range(cores_of(self._context))),
                    partial(sees, str(place)),
                    about="calque: shared files",
                )
        finally:
            nonce.unlink(missing_ok=True)
        if not all(seen):
            raise InvalidInput(f"not every executor sees the files of {folder}")


def tell_version(item: int, attempt: str) -> str:
    """Runs in an executor."""
    return __version__


def sees(path: str, item: int, attempt: str) -> bool:
    """Runs in an executor: whether a path is there."""
    return os.path.exists(path)


def run_span(task: SpanTask, attempt: str) -> SpanResult:
    """Runs in an executor: list a range, copy up to some pages of it, tell what is left."""
    request = TreeRequest.from_json(task.request)
    # Deletes are the driver's, when all has ended well; so are the journal, and the decision to
    # begin nothing more: a task that ended midway would be done again, with a second row for each.
    options = replace(
        request.options,
        concurrent=task.concurrent,
        on_error="continue",
        delete=False,
        delete_all=False,
        delete_excluded=False,
        journal=False,
    )
    limit, metrics = ConcurrencyLimit(task.concurrent), Metrics()
    layers = default_layers(limit=limit, metrics=metrics, pace=Pace(options.rate))
    target = open_target(request.target, request.target_options, layers)
    trees = pair_again(
        replace(request, options=options), task.tree, target, layers, named=task.named
    )
    rows: list[Row] = []
    moved: list[tuple[str, Metadata]] = []
    huge: list[Decision] = []
    report = Report(JobId(""), request.kind, (), "")
    shared = Shared(
        options,
        Collector(report, None, rows.append),
        limit,
        TreeProgress(),
        threading.Event(),
        moves=request.kind == "mv",
        moved_before=task.moved_before,
        hand_over=huge.append,
        delete_later=lambda path, source: moved.append((path, source)),
    )
    job = TreeJob(
        shared,
        trees,
        task.tree,
        ranges=[task.span],
        left_out=frozenset(task.left_out),
        pages=task.pages,
    )
    error: CalqueError | None = None
    try:
        job.copy()
    except CalqueError as failure:
        error = failure
    finally:
        job.close()
        trees.source.service.close()
        trees.target.service.close()
    return SpanResult(
        rows=tuple(rows),
        left=tuple(job.cut_left(task.pieces)),
        listed=report.totals.listed.objects,
        listed_bytes=report.totals.listed.bytes,
        requests=sum(each.count for each in metrics.snapshot().values()),
        dropped=dict(report.dropped),
        moved=tuple(moved),
        huge=tuple(huge),
        error=error,
    )


def run_parts(task: PartsTask, attempt: str) -> int:
    """Runs in an executor: bring some parts of an object that the driver commits."""
    request = TreeRequest.from_json(task.request)
    options = replace(request.options, concurrent=task.concurrent)
    limit = ConcurrencyLimit(task.concurrent)
    layers = default_layers(limit=limit, pace=Pace(options.rate))
    target = open_target(request.target, request.target_options, layers)
    trees = pair_again(request, task.tree, target, layers, named=task.named)
    carrier = Carrier(
        trees.source,
        trees.target,
        options,
        limit=limit,
        stopping=threading.Event(),
        moved=lambda count: None,
        dropped=lambda what: None,
    )
    try:
        return carrier.bring_parts(Checkpoint.from_json(task.checkpoint), task.numbers)
    finally:
        trees.source.service.close()
        trees.target.service.close()
