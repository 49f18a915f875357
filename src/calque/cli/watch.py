"""``calque load --watch``: load again and again what arrives, whatever happens to files."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from calque.cli.load_output import exit_code, show_report
from calque.cli.output import say
from calque.errors import (
    CalqueError,
    InvalidInput,
    LoadAborted,
    NotFound,
    PermissionDenied,
    Unavailable,
    Unsupported,
)
from calque.loader.model.outcome import Status
from calque.loader.plan.failed_files import FailedFiles
from calque.loader.report import Report
from calque.loader.request.request import LoadRequest
from calque.values import Backoff

if TYPE_CHECKING:
    from calque.loader.loader import Loader

SHORTEST = 0.1
LONGEST = 300.0
"""Seconds between two looks at least, and at most, however often a look failed."""

_OWN_NAME = re.compile(r"\d{8}T\d{6}-[-0-9a-f]+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{16,}")
"""In names of what a load writes: each has another one, and it is the same trouble all the same."""

Load = Callable[[LoadRequest, FailedFiles], Report]

WRONG_USAGE = (InvalidInput, NotFound, PermissionDenied, Unsupported)
"""What ends a watch whose first look it spoils; later it may pass."""


def _backoff(every: float) -> Backoff:
    first = max(every, SHORTEST)
    return Backoff(first=first, most=max(first, LONGEST), jitter=0.0)


def open_patiently(open: Callable[[], Loader], every: float) -> Loader:
    """Open it; a ledger that does not answer at first is waited for, as it would be later."""
    told = None
    waits = _backoff(every).waits()
    while True:
        try:
            return open()
        except Unavailable as error:
            if str(error) != told:
                say(f"{error}; trying again")
            told = str(error)
            time.sleep(next(waits))


class Watch:
    """One watch. Bad files are told once and left alone until they change; the others go in."""

    def __init__(self, loader: Loader, request: LoadRequest, every: float, *, json: bool) -> None:
        self._loader = loader
        self._request = request
        self._every = every
        self._json = json
        self._failed = FailedFiles()
        self._blamed: set[str] = set()
        """Files for which a look of this cycle was given up."""
        self._began = False
        self._troubles = 0
        self._trouble: str | None = None
        """The last that was told, until a look finds nothing that waits for its end."""
        self._news: frozenset[tuple[str, str]] = frozenset()
        self._worst = 0

    def run(self, load: Load) -> None:
        """Until it is stopped; ends with the worst exit code of its loads."""
        say(f"watching {self._request.stage}; stop with Ctrl-C")
        try:
            while True:
                begun = time.monotonic()
                if self._look(load):
                    self._blamed.clear()
                    time.sleep(max(0.0, self._pause() - (time.monotonic() - begun)))
        except KeyboardInterrupt:
            say("stopped watching")
            raise typer.Exit(self._worst) from None

    def _pause(self) -> float:
        return _backoff(self._every).wait(self._troubles + 1)

    def _look(self, load: Load) -> bool:
        """One cycle; False if another is due at once, for the files beside a bad one."""
        try:
            report = load(self._request, self._failed)
        except LoadAborted as error:
            return self._after_abort(error)
        except Exception as error:
            self._after_trouble(error)
            return True
        self._began, self._troubles = True, 0
        if report.table_version is not None or report.count(Status.SKIPPED_LOADED):
            # From now on a table that is not there is away: a new one in its place would get all
            # files again, and hide the old one when its disk comes back.
            self._request = replace(self._request, create=False)
        self._failed.note(report)
        self._show(report)
        return True

    def _after_abort(self, error: LoadAborted) -> bool:
        blamed = self._failed.note(error.report, error)
        if not blamed:  # no file can be named: it may pass
            self._after_trouble(error)
            return True
        self._began, self._troubles, self._worst = True, 0, max(self._worst, 1)
        say(f"failed: {error}; left alone until it changes")
        again = self._blamed.issuperset(blamed)  # it is written to all the time, by a logger say
        self._blamed.update(blamed)
        return again

    def _after_trouble(self, error: Exception) -> None:
        """Tell it once, wait longer each time, and start afresh whatever engine was at work."""
        ours = isinstance(error, CalqueError)
        if not self._began and (self._is_wrong_usage(error) or not ours):
            raise error
        told = str(error) if ours else f"{type(error).__name__}: {error}"
        trouble = _OWN_NAME.sub("", told)
        if trouble != self._trouble:
            say(f"{told}; trying again")
        self._trouble = trouble
        self._troubles += 1
        self._loader.let_go_of_engines()

    def _is_wrong_usage(self, error: Exception) -> bool:
        """A stage that is not there may be away for a while, if the table has files of it."""
        if isinstance(error, NotFound) and self._loader.knows_stage(self._request):
            return False
        return isinstance(error, WRONG_USAGE)

    def _show(self, report: Report) -> None:
        """What happened, not what was skipped; the same troubles not again and again."""
        report.only_news = True
        news = frozenset((row.location, row.status) for row in report.rows())
        if report.files_loaded or news != self._news:
            if news:
                show_report(report, json=self._json)
                sys.stdout.flush()  # who reads a pipe of ours would wait for the end, too
            self._worst = max(self._worst, exit_code(report))
        self._news = news
        if not report.count(Status.IN_PROGRESS):
            self._trouble = None
