"""What the commands of loads share: the bar, the rows of a report, the exit code."""

from __future__ import annotations

import signal
import sys
import threading
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from calque.cli.output import FAILED, PARTLY, as_json, say, seconds, size, table
from calque.errors import LoadAborted

if TYPE_CHECKING:
    from calque.loader.report import Report

SHOWN = 200
"""Result rows shown to a person; programs get them all by --json."""

ShowSkipped = Annotated[
    bool, typer.Option("--all", help="Show also the files that were loaded before.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show errors and warnings only.")]

COLUMNS = ("file", "status", "rows", "errors", "bytes", "seconds", "first error or reason")


def stop_by_sigterm() -> None:
    """Let SIGTERM end a load as Ctrl-C does: claims are released. A second one ends it at once."""

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        raise KeyboardInterrupt

    main = threading.current_thread() is threading.main_thread()
    if main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, stop)


def show_report(report: Report, *, json: bool, skipped: bool = False, quiet: bool = False) -> None:
    """The result row of every file (of skipped ones only if asked) and a line of sums."""
    if json:
        as_json(report.to_json())
        return
    if quiet and report.sample is None:
        return
    if report.sample is not None:
        from calque.loader.look.rows import cells_of

        table(report.sample.column_names, cells_of(report.sample))
        return
    _show_rows(report, skipped=skipped)
    for error in report.row_errors[:SHOWN]:
        where = f", column {error['column']}" if error["column"] else ""
        say(f"{error['file']}: line {error['line']}{where}: {error['message']}")
    for note in report.notes:
        say(f"note: {note}")
    for one in report.recovered:
        say(f"recovered load {one}")
    say(_summary(report))
    if report.load_ids and report.files.errors:
        say(f"see each rejected row with: calque errors {report.load_ids[-1]}")


def _show_rows(report: Report, *, skipped: bool) -> None:
    from calque.loader.model.outcome import Status
    from calque.values import count_of

    shown: list[tuple[object, ...]] = []
    more = 0
    for row in report.rows():
        if row.status == Status.SKIPPED_LOADED and not skipped:
            continue
        if len(shown) >= SHOWN and sys.stdout.isatty():
            more += 1
            continue
        told = row.first_error or row.message
        taken = (size(row.bytes), seconds(row.seconds))
        shown.append((row.name, row.status, row.rows_loaded, row.errors, *taken, told))
    if shown:
        table(COLUMNS, shown)
    if more:
        say(f"… and {count_of(more, 'file')} more; --json shows all")


def _summary(report: Report) -> str:
    from calque.values import count_of

    if report.dry_run and report.plan is not None:
        plan = report.plan
        count = sum(1 for _ in plan.files)
        return (
            f"dry run: {count_of(count, 'file')}, {size(plan.bytes)} of {plan.format.kind} in "
            f"{count_of(len(plan.tasks), 'task')} would go into {report.table}; nothing was changed"
        )
    counts = ", ".join(f"{count} {status}" for status, count in sorted(report.files.counts.items()))
    told = f"{report.table}: {count_of(report.rows_loaded, 'row')} from "
    told += count_of(report.files_loaded, "file")
    if report.load_ids:
        told += f" in load {', '.join(report.load_ids)}"
    if report.replayed:
        told += " (the label was loaded before; nothing was done now)"
    if report.forced and report.files_loaded:
        told += " (FORCE: files that were loaded before are in the table twice)"
    told += f"; {counts or 'no files'}"
    if report.purged:
        told += f"; {count_of(report.purged, 'source')} removed"
    if report.archived:
        told += f"; {count_of(report.archived, 'source')} moved to the archive"
    if report.seconds > 0 and report.bytes_loaded:
        told += f"; {seconds(report.seconds)} s, {size(report.bytes_loaded / report.seconds)}/s"
    return told


def exit_code(report: Report) -> int:
    """0: all is in the table; 3: partly; 1: nothing was loaded and files failed."""
    if report.failed:
        return FAILED
    return 0 if report.complete or report.dry_run or report.sample is not None else PARTLY


def finish(report: Report, *, json: bool, skipped: bool = False, quiet: bool = False) -> None:
    """Show the report and end with its exit code."""
    show_report(report, json=json, skipped=skipped, quiet=quiet)
    code = exit_code(report)
    if code:
        raise typer.Exit(code)


def finish_aborted(error: LoadAborted, *, json: bool, quiet: bool = False) -> None:
    """Show what is known of a statement that was given up, then let the error speak."""
    if error.report is not None and not (json or quiet) and len(error.report.files):
        show_report(error.report, json=False)
    raise error
