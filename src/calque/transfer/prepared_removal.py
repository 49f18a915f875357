"""A deletion of trees that is ready to run: opened, its job begun or found."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from calque.transfer.jobs.open_job import configured_ledger, find_left_of
from calque.transfer.model import KeyRange, Row
from calque.transfer.plan.overlap import refuse_report_inside
from calque.transfer.plan.pairing import pair_with_itself
from calque.transfer.prepared import Prepared
from calque.transfer.report.progress import TreeProgress
from calque.transfer.request.options import TreeOptions
from calque.transfer.request.tree_request import Given, TreeRequest
from calque.transfer.run.remove import Removal
from calque.transfer.run.run import Confirm
from calque.transfer.run.run_context import Shared

if TYPE_CHECKING:
    from calque.ledger import Ledger

NONE: Mapping[str, object] = MappingProxyType({})


class PreparedRemoval(Prepared):
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
        super().__init__(request)
        trees = pair_with_itself(request, self._layers, **find_left_of(request, ledger))
        refuse_report_inside(trees, request.report, removes=True)
        opened = self._open_job(trees, "", ledger, left_job)
        self.progress = TreeProgress(phase="deleting", trees=len(trees))
        shared = Shared(
            request.options,
            self._collect(on_event),
            self._limit,
            self.progress,
            threading.Event(),
            journal=opened.journal,
            known=opened.known,
        )
        self._removal = Removal(shared, trees, confirm)

    def stop(self) -> None:
        self._removal.stop()

    def _act(self) -> None:
        self._removal.run()

    def _left(self) -> Sequence[tuple[int, KeyRange]]:
        return ()  # all that is still there is deleted, whoever resumes


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
