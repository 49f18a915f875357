"""Every run is a job: begun, or gone on with where an earlier process has left it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from calque.config import load_settings
from calque.errors import CalqueError, ConditionNotMatch
from calque.late_module import LateModule
from calque.transfer.model import DELETES, WHOLE, JobId, Row, Totals
from calque.transfer.plan.pairing import FindLeft
from calque.transfer.plan.plan import Trees
from calque.transfer.plan.side import Side
from calque.transfer.report.report import Report
from calque.transfer.report.report_file import ReportFile
from calque.transfer.request.options import Kind
from calque.transfer.request.tree_request import TreeRequest, differences

if TYPE_CHECKING:
    from calque.ledger import configured, job_progress, job_record, jobs
    from calque.ledger.database import Ledger
    from calque.transfer.jobs import journal as journals
else:
    # The ledger's: a dry run keeps no journal, and does not wait for a library of SQL.
    configured = LateModule("calque.ledger.configured")
    job_progress = LateModule("calque.ledger.job_progress")
    job_record = LateModule("calque.ledger.job_record")
    jobs = LateModule("calque.ledger.jobs")
    journals = LateModule("calque.transfer.jobs.journal")

_NAMED = "named"
"""Which sources a job has found to be folders that keep their names."""


def configured_ledger() -> Ledger:
    """The ledger of the configuration, where jobs are kept unless told otherwise."""
    return configured.ledger_of(load_settings())


@dataclass(slots=True)
class OpenedJob:
    """What a run needs to be resumable: its journal, its report's file, what has a row already."""

    journal: journals.Journal | None = None
    writer: ReportFile | None = None
    known: Mapping[tuple[int, str], Row] = field(default_factory=dict)
    report: Report | None = None

    def end(self, left: journals.Left, flush: Callable[[], None]) -> None:
        """Note how the run has ended: over, or to be resumed.

        The report is whole before the job is over, for nobody could make it afterwards.
        """
        report = self.report
        assert report is not None
        over = not report.stopped and not report.error
        if self.writer is not None:
            self.writer.publish()
        if self.journal is not None and over:
            state: job_record.State = "PARTLY" if report.exit_code else "DONE"
            self.journal.end(state, left, flush, report.no_deletes or None)
        elif self.journal is not None:
            self.journal.end("STOPPED", left, flush, report.error or "it was stopped")
        if self.writer is not None:
            self.writer.close(over=over)

    def give_up(self) -> None:
        """After an error that ended the run: what has done nothing is forgotten, the rest can be
        resumed. The error that is under way is not hidden by another."""
        journal = self.journal
        try:
            if self.writer is not None:
                self.writer.close()
            if journal is None:
                return
            if journal.resumed or journal.phase == WHOLE or self._has_acted:
                journal.let_go()
            else:
                journal.drop()
        except CalqueError:
            return

    @property
    def _has_acted(self) -> bool:
        # The report may count more than the journal: objects that ended behind one that has not.
        return self.report is not None and bool(self.report.totals.done)

    def close(self) -> None:
        if self.journal is not None:
            self.journal.close()


def open_job(
    request: TreeRequest,
    trees: Sequence[Trees],
    report: Report,
    ledger: Callable[[], Ledger],
    left_job: str | None = None,
) -> OpenedJob:
    """The job of a request: a new one, or the one that was left of the same request.

    ConditionNotMatch names a job that is at the same trees, or was left with other options; or
    ``left_job``, which is to be gone on with, where the trees of it are others by now.
    """
    if request.options.dry_run or not request.options.journal:
        file = None if request.report is None else ReportFile(request.report)
        return OpenedJob(None, file, report=report)
    opened = ledger()
    try:
        journal = _journal(opened, request, trees, report, left_job)
    except BaseException:
        opened.close()
        raise
    try:
        return _open_report(journal, request, trees, report)
    except BaseException:
        OpenedJob(journal).give_up()
        journal.close()
        raise


def _journal(
    ledger: Ledger,
    request: TreeRequest,
    trees: Sequence[Trees],
    report: Report,
    left_job: str | None,
) -> journals.Journal:
    pair = pair_of(trees)
    told = {**request.to_json(), _NAMED: [each.named for each in trees]}
    left = jobs.find_unfinished(ledger, pair)
    if left_job is not None and (left is None or left.job_id != left_job):
        raise ConditionNotMatch(
            f"job {left_job} is over other trees than {', '.join(report.sources)} and "
            f"{report.target} are now",
            hint="Is it another server, by the environment or the configuration? Nothing was done.",
        )
    if left is not None and request.options.restart:
        jobs.remove_job(ledger, left.job_id)
        left = None
    if left is not None:
        # One that somebody is at is refused as such, whatever its options are.
        if not left.is_alive(ledger.shared_now()):
            _refuse_other(left, told)
        return journals.Journal.resume(ledger, left.job_id)
    job = job_record.Job(
        job_id=report.job,
        kind=request.kind,
        source=", ".join(report.sources),
        target=report.target,
        pair=pair,
        request=told,
        owner=journals.new_owner(),
        report=told["report"],
    )
    if request.kind == "rm":
        # Nothing is left by ranges: all that is still there is deleted, whoever resumes.
        return journals.Journal.begin(ledger, replace(job, phase=DELETES), 0)
    return journals.Journal.begin(ledger, job, len(trees))


def find_left(
    ledger: Callable[[], Ledger], kind: Kind, trees: Sequence[Trees], gone: Sequence[int]
) -> Sequence[bool] | None:
    """See :data:`calque.transfer.plan.pairing.FindLeft`: what a killed process had moved is gone
    from its source, and what it had copied whole may have been removed since."""
    with ledger() as opened:
        left = jobs.find_unfinished(opened, pair_of(trees))
        if left is None:
            return None
        unfinished = {span.tree for span in job_progress.spans_of(opened, left.job_id)}
        unfinished |= {tree for tree, _ in job_progress.copies_of(opened, left.job_id)}
    if kind != "mv" and not unfinished.isdisjoint(gone):
        return None
    named: Sequence[bool] | None = left.request.get(_NAMED)
    return named


def find_left_of(request: TreeRequest, ledger: Callable[[], Ledger]) -> dict[str, FindLeft]:
    """How sources are found that an earlier process has taken away, where there may be one."""
    options = request.options
    resumable = options.journal and not options.dry_run and not options.restart
    return {"find_left": partial(find_left, ledger, request.kind)} if resumable else {}


def pair_of(trees: Sequence[Trees]) -> str:
    """Which trees, however they are spelled; what a pattern leaves of one is a tree of its own.

    A name without a slash is the same, whether it is a folder or an object: of one that was moved
    away nobody can see it any more.
    """
    names = [_name(side, named=each.named) for each in trees for side in (each.source, each.target)]
    names += [str(each.chosen.to_json()) for each in trees if each.chosen is not None]
    return hashlib.sha256("\n".join(names).encode(errors="surrogateescape")).hexdigest()[:40]


def _name(side: Side, *, named: bool) -> str:
    only = side.only or ()
    if len(only) == 1:
        return side.service.identity(side.key(only[0])).name
    name = side.service.identity(side.prefix).name
    return (name.rstrip("/") if named else name) + "\0".join(("", *only))


def _refuse_other(left: job_record.Job, told: Mapping[str, object]) -> None:
    names = differences(left.request, told)
    if names:
        raise ConditionNotMatch(
            f"job {left.job_id} over the same trees was left unfinished, with other options: "
            f"{', '.join(names)}",
            hint=f"Go on with it by `calque jobs resume {left.job_id}`, or begin anew with "
            "--restart.",
        )


def _open_report(
    journal: journals.Journal, request: TreeRequest, trees: Sequence[Trees], report: Report
) -> OpenedJob:
    left = journal.unfinished
    if left is None:
        file = None if request.report is None else ReportFile(request.report)
        return OpenedJob(journal, file, report=report)
    report.job = JobId(journal.job.job_id)
    report.resumed = True
    if journal.job.report is None:
        report.totals = Totals.from_json(journal.job.totals)
        return OpenedJob(journal, report=report)
    file = ReportFile(journal.job.report, resume=True)
    known = _count_rows(file, journal, trees, report)
    journal.settled = Totals.from_json(report.totals.to_json())
    return OpenedJob(journal, file, known, report)


def _count_rows(
    file: ReportFile, journal: journals.Journal, trees: Sequence[Trees], report: Report
) -> dict[tuple[int, str], Row]:
    """Count the rows that are there; those of paths that are left must not be written again.

    They are few: what was done since the last note, what overtook an object before it, and what
    could not be deleted.
    """
    known = {}
    left, deletes = journal.unfinished, journal.phase == DELETES
    assert left is not None
    announced = {(number, row.path) for number, rows in left.announced for row in rows}
    for row in file.rows():
        report.totals.add(row)
        for number, each in enumerate(trees):
            path = row.path.removeprefix(each.label)
            if row.path.startswith(each.label) and (
                (deletes and row.is_problem)
                or (number, path) in announced
                or left.holds(number, path)
            ):
                known[number, path] = row
    return known
