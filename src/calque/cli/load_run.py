"""One load as the command line makes it: with a bar, counted where somebody asked for numbers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from calque.cli.load_output import exit_code
from calque.cli.output import FAILED
from calque.errors import CalqueError, LoadAborted

if TYPE_CHECKING:
    from calque.cli.run_metrics import RunMetrics
    from calque.loader.loader import Loader
    from calque.loader.model.load_progress import LoadProgress
    from calque.loader.plan.failed_files import FailedFiles
    from calque.loader.report import Report
    from calque.loader.request.request import LoadRequest


@dataclass(frozen=True, slots=True)
class Run:
    """Loads a request, once or, for a watch, again and again."""

    loader: Loader
    quiet: bool
    metrics: RunMetrics | None = None

    def __call__(self, request: LoadRequest, failed: FailedFiles | None = None) -> Report:
        with self._open_bar() as show:

            def update(done: LoadProgress) -> None:
                if show is not None:
                    show(done)
                if self.metrics is not None:
                    self.metrics.load_progress(done)

            try:
                report = self.loader.run(request, update, failed)
            except CalqueError as error:
                self._count(error.report if isinstance(error, LoadAborted) else None, FAILED)
                raise
        self._count(report, exit_code(report))
        return report

    def _open_bar(self) -> AbstractContextManager[Callable[[LoadProgress], None] | None]:
        if self.quiet or not sys.stderr.isatty():
            return nullcontext()  # nobody would see it, so what draws it is not imported
        from calque.loader.progress_bar import load_bar

        return load_bar()

    def _count(self, report: Report | None, code: int) -> None:
        if self.metrics is not None:
            self.metrics.count_load(report, code)
