"""Trees on the command line: from flags to a run, its progress, its report and its exit code.

Commands that may be about one object import this when they are about more: a copy of one object
does not pay for the ledger.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from calque.cli.flags.metrics_flags import NO_METRICS, MetricsWanted
from calque.cli.locations import refuse_idle_options, remote_of, settle, settle_alike
from calque.cli.output import as_json, say, size
from calque.errors import ConfigInvalid
from calque.values import count_of, printable

if TYPE_CHECKING:
    from calque.transfer.model import Row
    from calque.transfer.report.progress import TreeProgress
    from calque.transfer.report.report import Report
    from calque.transfer.request.options import Kind, TreeOptions
    from calque.transfer.request.tree_request import TreeRequest

_SAY_SECONDS = 5.0
_SHOWN = 20
"""Problems that are shown by name; the report has all."""


class TreeCommand:
    """One command over trees."""

    def __init__(
        self,
        kind: Kind,
        locations: Sequence[str],
        options: TreeOptions,
        *,
        of_source: Sequence[str] = (),
        of_target: Sequence[str] = (),
        report: str | None = None,
        yes: bool = True,
        quiet: bool = False,
        json: bool = False,
        metrics: MetricsWanted = NO_METRICS,
    ) -> None:
        from calque.transfer.request.tree_request import TreeRequest

        if len(locations) < 2:
            raise typer.BadParameter("a source and a target are needed", param_hint="SRC... DST")
        *sources, target = locations
        refuse_idle_options(sources, target, of_source, of_target)
        uris, source_options = settle_alike(sources, of_source)
        goal, goal_options = settle(target, of_target)
        if options.backup_to is not None:
            kept, kept_options = settle(options.backup_to, of_target)
            if kept_options and kept_options != goal_options:
                raise ConfigInvalid(
                    f"--backup-to {options.backup_to} is of a service with other options than the "
                    "target's",
                    hint="What is overwritten or deleted is kept in the service of the target, or "
                    "in a local folder.",
                )
            options = replace(options, backup_to=kept)
        self._request = TreeRequest(
            kind=kind,
            sources=uris,
            target=goal,
            options=options,
            source_options=source_options,
            target_options=goal_options,
            report=report,
            remotes=(remote_of(sources[0]), remote_of(target)),
        )
        self._yes = yes
        self._quiet = quiet
        self._json = json
        self._metrics = metrics

    def run(self) -> None:
        """Run it, show it, and leave with its exit code."""
        run_and_show(
            self._request,
            yes=self._yes,
            quiet=self._quiet,
            json=self._json,
            metrics=self._metrics,
        )


def run_and_show(
    request: TreeRequest,
    *,
    yes: bool = True,
    quiet: bool = False,
    json: bool = False,
    metrics: MetricsWanted = NO_METRICS,
    left_job: str | None = None,
) -> None:
    """Run a request, or go on with what was left of it; show it, and leave with its exit code."""
    from calque.cli.copy_job import stop_on_signals
    from calque.transfer.api import PreparedRun

    shows_rows = request.options.dry_run and not json
    with stop_on_signals(), metrics.count_run(request.kind) as counted:
        prepared = PreparedRun(
            request,
            on_event=_show_row if shows_rows else None,
            confirm=None if yes or not sys.stdin.isatty() else _ask,
            left_job=left_job,
        )
        if shows_rows:
            for line in prepared.describe():
                print(printable(line))
        if prepared.resumes and not quiet and not json:
            say(f"going on with job {prepared.job}, which was left unfinished")
        if counted is not None:
            counted.watch_tree(prepared.progress)
        shown = progress_shown(prepared.progress, show=not (quiet or json or shows_rows))
        with _way_on_told(quiet=quiet), shown:
            report = prepared.run()
        if counted is not None:
            counted.count_tree(report)
    if json:
        as_json(report.to_json())
    elif not quiet:
        show_report(report)
    if report.exit_code:
        raise typer.Exit(report.exit_code)


def removal_request(
    locations: Sequence[str], options: TreeOptions, *, given: Sequence[str], report: str | None
) -> TreeRequest:
    """What is to be deleted, from what was typed."""
    from calque.transfer.prepared_removal import removal_of

    uris, service_options = settle_alike(locations, given)
    remote = remote_of(locations[0])
    return removal_of(uris, options, options=service_options, report=report, remote=remote)


def remove_and_show(
    request: TreeRequest,
    *,
    yes: bool,
    quiet: bool = False,
    json: bool = False,
    left_job: str | None = None,
) -> None:
    """Delete trees, show what went, and leave with the exit code."""
    from calque.cli.copy_job import stop_on_signals
    from calque.transfer.prepared_removal import PreparedRemoval

    shows_rows = request.options.dry_run and not json
    confirm = None if yes or not sys.stdin.isatty() else _ask
    with stop_on_signals():
        prepared = PreparedRemoval(
            request,
            on_event=_show_row if shows_rows else None,
            confirm=confirm,
            left_job=left_job,
        )
        if prepared.resumes and not quiet and not json:
            say(f"going on with job {prepared.job}, which was left unfinished")
        shown = progress_shown(prepared.progress, show=not (quiet or json or shows_rows))
        with _way_on_told(quiet=quiet), shown:
            done = prepared.run()
    if json:
        as_json(done.to_json())
    elif not quiet:
        show_report(done)
    if done.exit_code:
        raise typer.Exit(done.exit_code)


def show_report(report: Report) -> None:
    """A run in a few lines; each problem by name, up to some."""
    totals = report.totals
    for row in report.problems[:_SHOWN]:
        say(f"{row.outcome}: {row.path}: {row.why}")
    if len(report.problems) > _SHOWN:
        say(f"… and {totals.problems - _SHOWN} more")
    would = "would be " if report.dry_run else ""
    always = ("deleted",) if report.kind == "rm" else ("copied", "up to date")
    parts = [
        f"{count.objects} {would if outcome in ('copied', 'deleted') else ''}{outcome}"
        + (f" ({size(count.bytes)})" if count.bytes and outcome == "copied" else "")
        for outcome, count in totals.by_outcome.items()
        if count.objects or outcome in always
    ]
    ways = ", ".join(
        f"{size(count.bytes)} {route}" for route, count in totals.by_route.items() if count.bytes
    )
    say(f"{', '.join(parts)} in {totals.seconds:.1f} s" + (f"; {ways}" if ways else ""))
    for what, count in report.dropped.items():
        say(f"{what} of {count_of(count, 'object')} could not be kept by the target")
    if report.verified is not None:
        say(f"{report.verified} of {totals.of('copied').objects} copies verified")
    for line in report.refutations[:_SHOWN]:
        say(f"not as it was copied: {line}")
    if report.no_deletes:
        say(f"nothing was deleted: {report.no_deletes}")
    if report.error:
        say(f"error: {report.error}")
    if report.stopped:
        _tell_way_on()


@contextmanager
def _way_on_told(*, quiet: bool) -> Iterator[None]:
    """Whoever does not wait until a run has stopped is told how to go on with it, too."""
    try:
        yield
    except KeyboardInterrupt:
        if not quiet:
            _tell_way_on()
        raise


def _tell_way_on() -> None:
    say(f"stopped; go on with: {shlex.join(['calque', *sys.argv[1:]])}")


def _show_row(row: Row) -> None:
    """A line of a dry run."""
    sign = {"copied": "+", "deleted": "-", "failed": "!", "changed": "!", "skipped": "#"}
    if row.outcome in sign:
        # What was named to be deleted needs no reason.
        asked = row.outcome == "deleted" and row.rule == "always"
        why = "" if asked else f"  ({row.why or row.rule})"
        print(f"{sign[row.outcome]} {printable(row.path)}{why}")


def _ask(count: int, total: int, names: Sequence[str]) -> bool:
    from calque.transfer.report.shown_progress import CLEAR_LINE

    shown = ", ".join(printable(name) for name in names)
    more = ", …" if count > len(names) else ""
    what = count_of(count, "object")
    if sys.stderr.isatty():
        sys.stderr.write(CLEAR_LINE)
    return typer.confirm(f"delete {what} ({size(total)}): {shown}{more}?", err=True)


def progress_shown(progress: TreeProgress, *, show: bool) -> AbstractContextManager[None]:
    """A line that is renewed on a terminal; elsewhere one every few seconds."""
    from calque.transfer.report.shown_progress import describe_often, terminal_line

    if not show:
        return nullcontext()
    if sys.stderr.isatty():
        return terminal_line(progress)
    return describe_often(progress, say, _SAY_SECONDS)
