"""A request that is ready to run: its trees opened, its job begun or found, nothing done yet."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from calque import tracing
from calque.operator.layers import ConcurrencyLimit, Metrics, Pace, default_layers
from calque.transfer.jobs.open_job import OpenedJob, open_job
from calque.transfer.model import KeyRange, Row, new_job_id
from calque.transfer.plan.plan import Trees
from calque.transfer.report.progress import TreeProgress
from calque.transfer.report.report import Collector, Report
from calque.transfer.request.tree_request import TreeRequest

if TYPE_CHECKING:
    from calque.ledger import Ledger


class Prepared(ABC):
    """What every run over trees begins and ends with."""

    progress: TreeProgress

    def __init__(self, request: TreeRequest) -> None:
        self._request = request
        self._limit = ConcurrencyLimit(request.options.concurrent)
        self._metrics = Metrics()
        self._layers = default_layers(
            limit=self._limit, metrics=self._metrics, pace=Pace(request.options.rate)
        )

    def _open_job(
        self,
        trees: Sequence[Trees],
        target: str,
        ledger: Callable[[], Ledger],
        left_job: str | None,
    ) -> OpenedJob:
        """Last of all that may be refused: from here on there is a job."""
        request, sources = self._request, tuple(each.shown for each in trees)
        self.trees = trees
        self._report = Report(
            new_job_id(), request.kind, sources, target, dry_run=request.options.dry_run
        )
        self._opened = open_job(request, trees, self._report, ledger, left_job)
        return self._opened

    def _collect(
        self,
        on_event: Callable[[Row], None] | None,
        claim: Callable[[Row], None] | None = None,
    ) -> Collector:
        self._collector = Collector(self._report, self._opened.writer, on_event, claim)
        return self._collector

    @property
    def job(self) -> str:
        """The id of the job."""
        return self._report.job

    @property
    def resumes(self) -> bool:
        """Whether an earlier process has begun it."""
        return self._report.resumed

    @abstractmethod
    def stop(self) -> None:
        """Begin nothing more."""

    @abstractmethod
    def _act(self) -> None:
        """Do all of it; the report tells of it."""

    @abstractmethod
    def _left(self) -> Sequence[tuple[int, KeyRange]]:
        """What is still to be acted on: of which tree, which keys."""

    def run(self) -> Report:
        """Do it. What ends it by an error can be resumed, if it has done anything."""
        report, opened = self._report, self._opened
        try:
            with tracing.span("tree", kind=report.kind, job=self.job):
                self._act()
            opened.end(self._left, self._collector.flush)
        except BaseException:
            opened.give_up()
            raise
        finally:
            opened.close()
            for each in self.trees:
                each.source.close()
                each.target.close()
        report.totals.requests = sum(each.count for each in self._metrics.snapshot().values())
        return report
