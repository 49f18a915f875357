"""A deletion of trees that is ready to run: opened, its job begun or found."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from calque import tracing
from calque.operator.layers import ConcurrencyLimit, Metrics, Pace, default_layers
from calque.transfer.jobs.open_job import configured_ledger, end_journal, find_left_of, open_job
from calque.transfer.model import Row, new_job_id
from calque.transfer.plan.overlap import refuse_report_inside
from calque.transfer.plan.pairing import pair_with_itself
from calque.transfer.report.progress import TreeProgress
from calque.transfer.report.report import Collector, Report
from calque.transfer.request.options import TreeOptions
from calque.transfer.request.tree_request import Given, TreeRequest
from calque.transfer.run.remove import Removal
from calque.transfer.run.run import Confirm
from calque.transfer.run.shared import Shared

if TYPE_CHECKING:
    from calque.ledger import Ledger

NONE: Mapping[str, object] = MappingProxyType({})


class PreparedRemoval:
    """A request to delete trees, which are opened; nothing is deleted yet."""

    def __init__(
        self,
        request: TreeRequest,
        *,
        on_event: Callable[[Row], None] | None = None,
        confirm: Confirm | None = None,
        ledger: Callable[[], Ledger] = configured_ledger,
        left_job: str | None = None,
    ) -> None:
        """As :class:`calque.transfer.api.PreparedRun`; see :func:`removal_of`."""
        options = request.options
        limit, self._metrics = ConcurrencyLimit(options.concurrent), Metrics()
        layers = default_layers(limit=limit, metrics=self._metrics, pace=Pace(options.rate))
        self._trees = pair_with_itself(request, layers, **find_left_of(request, ledger))
        refuse_report_inside(self._trees, request.report, removes=True)
        sources = tuple(each.shown for each in self._trees)
        report = Report(new_job_id(), "rm", sources, "", dry_run=options.dry_run)
        self._opened = open_job(request, self._trees, report, ledger, left_job)
        self.progress = TreeProgress(phase="deleting", trees=len(self._trees))
        self._collector = Collector(report, self._opened.writer, on_event)
        shared = Shared(
            options,
            self._collector,
            limit,
            self.progress,
            threading.Event(),
            journal=self._opened.journal,
            known=self._opened.known,
        )
        self._removal = Removal(shared, self._trees, confirm)

    @property
    def job(self) -> str:
        """The id of the job."""
        return self._removal.report.job

    @property
    def resumes(self) -> bool:
        """Whether an earlier process has begun it."""
        return self._removal.report.resumed

    def run(self) -> Report:
        """Do it; see :meth:`calque.transfer.run.remove.Removal.run`."""
        report = self._removal.report
        try:
            with tracing.span("tree", kind=report.kind, job=self.job):
                self._removal.run()
            if self._opened.journal is not None:
                end_journal(self._opened.journal, report, list, self._collector.flush)
            self._opened.finish(over=not report.stopped)
        except BaseException:
            self._opened.give_up()
            raise
        finally:
            self._opened.close()
            for each in self._trees:
                each.target.close()
        report.totals.requests = sum(each.count for each in self._metrics.snapshot().values())
        return report


def removal_of(
    given: Sequence[Given],
    chosen: TreeOptions,
    *,
    options: Mapping[str, object] = NONE,
    report: str | None = None,
    remote: str | None = None,
) -> TreeRequest:
    """The request to delete trees, all of one service; they are what it is held against."""
    return TreeRequest(
        kind="rm",
        sources=given,
        target=given[0] if given else "",
        options=chosen,
        source_options=options,
        target_options=options,
        report=report,
        remotes=(remote, remote),
    )
