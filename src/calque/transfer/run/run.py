"""A whole run over trees: every tree is copied, and only then is anything deleted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from calque.errors import CalqueError
from calque.operator.layers import ConcurrencyLimit
from calque.transfer.model import DELETES, EVERYTHING, KeyRange, Row
from calque.transfer.plan.plan import Trees
from calque.transfer.report.progress import TreeProgress
from calque.transfer.report.report import Collector, Report
from calque.transfer.request.options import TreeOptions
from calque.transfer.run.interrupts import GRACE_SECONDS, see_through
from calque.transfer.run.removals.moved_links import move_links
from calque.transfer.run.removals.unreported_acts import tell_moved
from calque.transfer.run.run_context import Cluster, Shared
from calque.transfer.run.tree_job import TreeJob
from calque.transfer.run.verification import Verification
from calque.transfer.run.whole_prefix import WholePrefix
from calque.values import count_of

if TYPE_CHECKING:
    from calque.transfer.jobs.journal import Journal

NO_ROWS: Mapping[tuple[int, str], Row] = MappingProxyType({})

Confirm = Callable[[int, int, Sequence[str]], bool]
"""Asked once before deletes: how many, their bytes, the first names."""


class Run:
    """One run over one or more pairs of trees, on threads of this process."""

    def __init__(
        self,
        trees: Sequence[Trees],
        options: TreeOptions,
        collector: Collector,
        *,
        limit: ConcurrencyLimit,
        moves: bool = False,
        confirm: Confirm | None = None,
        journal: Journal | None = None,
        known: Mapping[tuple[int, str], Row] = NO_ROWS,
        cluster: Cluster | None = None,
        verification: Verification | None = None,
    ) -> None:
        self._verification = verification
        self._cluster = cluster
        self._trees = trees
        self._journal = journal
        self._jobs: list[TreeJob] = []
        self._options = options
        self._collector = collector
        self._confirm = confirm
        self.progress = TreeProgress(trees=len(trees))
        self._stopping = threading.Event()
        self._shared = Shared(
            options,
            collector,
            limit,
            self.progress,
            self._stopping,
            moves=moves,
            moved_before=moves and journal is not None and journal.resumed,
            journal=journal,
            known=known,
        )

    @property
    def report(self) -> Report:
        return self._collector.report

    def execute(self) -> Report:
        """Plan and do all; the report says what became of each object.

        Raises what makes the whole impossible before anything was done. After that an error of a
        listing is part of the report: what was copied stands, and nothing is deleted.
        """
        begun = time.monotonic()
        jobs = self._jobs
        if self._journal is not None:
            self._journal.start(self.list_left, self._collector.flush, self.stop)
        try:
            self._shared = tell_moved(self._shared, self._trees)
            for number, trees in enumerate(self._trees):
                elsewhere = self._cluster is not None
                if not self._stopping.is_set() and self._went_whole(number, trees):
                    jobs.append(TreeJob(self._shared, trees, number, ranges=[]))
                    continue
                shared = self._move_links(number, trees)
                jobs.append(TreeJob(shared, trees, number, elsewhere=elsewhere))
                if not self._stopping.is_set():
                    jobs[-1].copy()
                if self._cluster is not None:
                    see_through(partial(jobs[-1].copy_on, self._cluster), self.stop)
            self.progress.listing = False
            if self._options.delete:
                self.progress.phase = "deleting"
                see_through(lambda: self._note_deletes(jobs), self.stop)
                self.report.no_deletes = self._objection(jobs)
                see_through(lambda: self._delete(jobs), self.stop)
            see_through(self._verify, self.stop)
        except CalqueError as error:
            if not self._stopping.is_set():  # or it is the stop that was met as an error
                self._fail(error)
        finally:
            for job in jobs:
                job.close()
            if self._verification is not None:
                self._verification.close()
            self.report.totals.seconds = time.monotonic() - begun
        if self._shared.gave_up.is_set():
            self.report.error = "given up at an error: the rest was not tried"
        self.report.stopped = self._stopping.is_set() and not self._shared.gave_up.is_set()
        return self.report

    def _went_whole(self, number: int, trees: Trees) -> bool:
        went: list[bool] = []
        whole = WholePrefix(self._shared, trees, number)
        # Elsewhere: Ctrl-C here would leave it open whether all of it went.
        see_through(lambda: went.append(whole.try_at_once(self.list_left)), self.stop)
        return went == [True]

    def _move_links(self, number: int, trees: Trees) -> Shared:
        def run(shared: Shared, links: Trees) -> None:
            job = TreeJob(shared, links, number)
            try:
                if not self._stopping.is_set():
                    job.copy()
            finally:
                job.close()

        return move_links(self._shared, trees, number, run)

    def _note_deletes(self, jobs: Sequence[TreeJob]) -> None:
        if self._journal is not None:
            self._journal.phase = DELETES
        resumed = self._journal is not None and self._journal.resumed
        if (resumed or self._cluster is not None) and not self._stopping.is_set():
            for job in jobs:
                job.clearing.list_again()

    def list_left(self) -> list[tuple[int, KeyRange]]:
        """What is still to be acted on, of trees that were begun and of those that were not."""
        left: list[tuple[int, KeyRange]] = []
        for number in range(len(self._trees)):
            if number < len(self._jobs):
                spans = self._jobs[number].list_left()
            elif self._journal is not None and self._journal.unfinished is not None:
                spans = self._journal.unfinished.spans_of(number)
            else:
                spans = [EVERYTHING]
            left += [(number, span) for span in spans]
        return left

    def stop(self) -> None:
        """Begin nothing more; what is in flight comes to its end."""
        self._stopping.set()
        for job in self._jobs:
            job.stop()
        if self._cluster is not None:
            # What a task has copied and not told is found up to date by whoever resumes.
            given_up = threading.Timer(GRACE_SECONDS, self._cluster.cancel)
            given_up.daemon = True
            given_up.start()

    def _fail(self, error: CalqueError) -> None:
        if not self.report.totals.done:
            raise error
        self.report.error = str(error)
        if self._options.delete and not self.progress.to_delete:
            self.report.no_deletes = "the trees could not be listed to their end"

    def _delete(self, jobs: Sequence[TreeJob]) -> None:
        if not self.report.no_deletes:
            self.progress.to_delete = sum(job.clearing.spool.count for job in jobs)
        for job in jobs:
            job.clearing.delete(withheld=self.report.no_deletes)

    def _verify(self) -> None:
        """Look at what was copied once more; a listing that fails now is an error of its own."""
        if self._verification is None or self._stopping.is_set():
            return
        self.progress.phase = "verifying"
        try:
            self._verification.run(self._collector.note_refuted)
        except CalqueError as error:
            self.report.error = f"what was copied could not be verified: {error}"
            return
        self.report.verified = self._verification.looked_at - self.report.refuted

    def _objection(self, jobs: Sequence[TreeJob]) -> str:
        """Why nothing may be deleted; empty where all may."""
        problems = self.report.totals.problems
        count = sum(job.clearing.spool.count for job in jobs)
        there = sum(job.plan.seen.target_objects for job in jobs)
        if self._stopping.is_set():
            return "the run was stopped"
        if problems:
            return f"{count_of(problems, 'object')} failed, and after an error none goes"
        if not self._options.max_delete.allows(count, there):
            return (
                f"{count} of {there} objects would go, which is more than "
                f"--max-delete {self._options.max_delete} allows"
            )
        if count and not self._is_confirmed(jobs, count):
            return "it was not confirmed"
        return ""

    def _is_confirmed(self, jobs: Sequence[TreeJob], count: int) -> bool:
        if self._confirm is None or self._options.dry_run:
            return True
        size = sum(job.clearing.spool.bytes for job in jobs)
        names = [path for job in jobs for path in job.clearing.spool.first][:3]
        with self.progress.showing:
            return self._confirm(count, size, names)
