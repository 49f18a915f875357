"""Trees on the command line: from flags to a run, its progress, its report and its exit code."""

from __future__ import annotations

import shlex
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Annotated

import typer

from calque.cli.copy_job import terminable
from calque.cli.locations import settle
from calque.cli.output import as_json, printable, say, size
from calque.cli.quantities import parse_rate, parse_size
from calque.cli.standard_streams import STANDARD
from calque.cli.tree_flags import FilesFrom, FromReport, Nul, Only, names_from
from calque.errors import InvalidInput
from calque.transfer.api import PreparedRun, remove_trees
from calque.transfer.filters import Filters
from calque.transfer.model import Row
from calque.transfer.places import has_glob
from calque.transfer.progress import TreeProgress
from calque.transfer.report import Report
from calque.transfer.report_file import ReportFile
from calque.transfer.request import Compare, Fsync, Kind, MaxDelete, OnError, TreeOptions
from calque.transfer.tree_request import TreeRequest

Recursive = Annotated[
    bool, typer.Option("--recursive", "-r", help="Folders with all that lies below them.")
]
_SAY_SECONDS = 5.0
_SHOWN = 20
"""Problems that are shown by name; the report has all."""


def sheet_of_tree(
    compare: Annotated[
        Compare, typer.Option("--compare", help="By what it is decided whether to copy.")
    ] = "default",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "-n", help="Only say what would be done.")
    ] = False,
    report: Annotated[
        str | None,
        typer.Option(
            "--report", metavar="FILE", help="A row for each object: .jsonl .csv .parquet"
        ),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option("--rate", metavar="N/s", help="Requests a second, at most: 200/s."),
    ] = None,
    bandwidth: Annotated[
        str | None,
        typer.Option("--bandwidth", metavar="SIZE/s", help="Through this machine: 50M/s."),
    ] = None,
    on_error: Annotated[
        OnError, typer.Option("--on-error", help="Go on with the rest, or stop at the first.")
    ] = "continue",
    fsync: Annotated[
        Fsync, typer.Option("--fsync", help="When files are brought to the disk.")
    ] = "batch",
    content_type: Annotated[
        str | None, typer.Option("--content-type", help="Of all uploads; else by their names.")
    ] = None,
    modes: Annotated[
        bool, typer.Option("--modes", help="Give files the modes that their objects keep.")
    ] = False,
    owner: Annotated[
        bool, typer.Option("--owner", help="Keep owners of files, and give them back.")
    ] = False,
    folders: Annotated[
        bool, typer.Option("--folders", help="Keep empty folders as markers in object services.")
    ] = False,
    restart: Annotated[
        bool,
        typer.Option("--restart", help="Begin anew, although an earlier run was left unfinished."),
    ] = False,
    journal: Annotated[
        bool,
        typer.Option("--journal/--no-journal", help="Note progress, so that it can be resumed."),
    ] = True,
    no_glob: Annotated[
        bool, typer.Option("--no-glob", help="Take * ? [ and { in a source as they are.")
    ] = False,
    files_from: FilesFrom = None,
    null: Nul = False,
    from_report: FromReport = None,
    only: Only = "failed",
) -> tuple[TreeOptions, str | None]:
    """Options of a run, and the file of its rows."""
    options = TreeOptions(
        compare=compare,
        dry_run=dry_run,
        rate=None if rate is None else parse_rate(rate),
        bandwidth=None if bandwidth is None else parse_size(bandwidth.removesuffix("/s")),
        on_error=on_error,
        fsync=fsync,
        content_type=content_type,
        folders=folders,
        modes=modes,
        owner=owner,
        restart=restart,
        journal=journal,
        globs=not no_glob,
        files_from=names_from(files_from, null, from_report, only),
    )
    return options, report


def sheet_of_deletes(
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete at the target what the source lacks, last.")
    ] = False,
    delete_all: Annotated[
        bool, typer.Option("--delete-all", help="Even where the source has nothing at all.")
    ] = False,
    delete_excluded: Annotated[
        bool, typer.Option("--delete-excluded", help="Delete what filters leave out, too.")
    ] = False,
    max_delete: Annotated[
        str,
        typer.Option(
            "--max-delete",
            metavar="N|P%",
            help="Delete nothing at all where it would be more.",
            show_default="50% of more than 100",
        ),
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before deleting.")] = False,
) -> tuple[dict[str, object], bool]:
    """What may be deleted, and whether to ask."""
    asked: dict[str, object] = {
        "delete": delete or delete_all or delete_excluded,
        "delete_all": delete_all,
        "delete_excluded": delete_excluded,
    }
    if max_delete:
        asked["max_delete"] = MaxDelete.parse(max_delete)
    return asked, yes


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
    ) -> None:
        if len(locations) < 2:
            raise InvalidInput("a source and a target are needed", hint="calque COMMAND SRC... DST")
        *sources, target = locations
        settled = [settle(each, of_source) for each in sources]
        goal, goal_options = settle(target, of_target)
        if len({str(sorted(given.items())) for _, given in settled}) > 1:
            raise InvalidInput("the sources are of services with different options: one at a time")
        self._request = TreeRequest(
            kind=kind,
            sources=[uri for uri, _ in settled],
            target=goal,
            options=options,
            source_options=settled[0][1],
            target_options=goal_options,
            report=report,
        )
        self._yes = yes
        self._quiet = quiet
        self._json = json

    def run(self) -> None:
        """Run it, show it, and leave with its exit code."""
        run_and_show(self._request, yes=self._yes, quiet=self._quiet, json=self._json)


def run_and_show(
    request: TreeRequest, *, yes: bool = True, quiet: bool = False, json: bool = False
) -> None:
    """Run a request, show it, and leave with its exit code."""
    shows_rows = request.options.dry_run and not json
    with terminable():
        prepared = PreparedRun(
            request,
            on_event=_show_row if shows_rows else None,
            confirm=None if yes or not sys.stdin.isatty() else _ask,
        )
        if shows_rows:
            for line in prepared.describe():
                print(printable(line))
        if prepared.resumes and not quiet and not json:
            say(f"going on with job {prepared.job}, which was left unfinished")
        with _shown(prepared.progress, show=not (quiet or json or shows_rows)):
            report = prepared.run()
    if json:
        as_json(report.to_json())
    elif not quiet:
        show_report(report)
    if report.exit_code:
        raise typer.Exit(report.exit_code)


def remove_and_show(
    locations: Sequence[str],
    options: TreeOptions,
    *,
    given: Sequence[str],
    report: str | None,
    yes: bool,
    json: bool,
) -> None:
    """Delete trees, show what went, and leave with the exit code."""
    settled = [settle(each, given) for each in locations]
    with terminable():
        done = remove_trees(
            [uri for uri, _ in settled],
            settled[0][1],
            options,
            on_event=_show_row if options.dry_run and not json else None,
            writer=ReportFile(report) if report else None,
            confirm=None if yes or not sys.stdin.isatty() else _ask,
        )
    if json:
        as_json(done.to_json())
    else:
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
    parts = [
        f"{count.objects} {would if outcome in ('copied', 'deleted') else ''}{outcome}"
        + (f" ({size(count.bytes)})" if count.bytes and outcome == "copied" else "")
        for outcome, count in totals.by_outcome.items()
        if count.objects or (outcome in ("copied", "up to date") and report.kind != "rm")
    ]
    ways = ", ".join(
        f"{size(count.bytes)} {route}" for route, count in totals.by_route.items() if count.bytes
    )
    say(f"{', '.join(parts)} in {totals.seconds:.1f} s" + (f"; {ways}" if ways else ""))
    for what, count in report.dropped.items():
        say(f"{what} of {count} objects could not be kept by the target")
    if report.no_deletes:
        say(f"nothing was deleted: {report.no_deletes}")
    if report.error:
        say(f"error: {report.error}")
    if report.stopped:
        say(f"stopped; go on with: {shlex.join(['calque', *sys.argv[1:]])}")


def _show_row(row: Row) -> None:
    """A line of a dry run."""
    sign = {"copied": "+", "deleted": "-", "failed": "!", "changed": "!", "skipped": "#"}
    if row.outcome in sign:
        why = f"  ({row.why or row.rule})"
        print(f"{sign[row.outcome]} {printable(row.path)}{why}")


def _ask(count: int, total: int, names: Sequence[str]) -> bool:
    shown = ", ".join(printable(name) for name in names)
    more = ", …" if count > len(names) else ""
    return typer.confirm(f"delete {count} objects ({size(total)}): {shown}{more}?", err=True)


@contextmanager
def _shown(progress: TreeProgress, *, show: bool) -> Iterator[None]:
    """A line that is renewed on a terminal; elsewhere one every few seconds."""
    if not show:
        yield
        return
    over = threading.Event()
    terminal = sys.stderr.isatty()
    begun = time.monotonic()

    def tick() -> None:
        while not over.wait(0.2 if terminal else _SAY_SECONDS):
            line = _line(progress, time.monotonic() - begun)
            if terminal:
                sys.stderr.write(f"\r\x1b[K{line}")
                sys.stderr.flush()
            else:
                say(line)

    teller = threading.Thread(target=tick, name="calque-progress", daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()
        if terminal:
            sys.stderr.write("\r\x1b[K")


def _line(progress: TreeProgress, seconds: float) -> str:
    done = f"{progress.ended} copied, {size(progress.bytes_moved)}"
    if progress.listing:
        return f"{progress.listed} listed so far, {done} of {progress.to_copy}"
    share = progress.bytes_moved / progress.bytes_to_copy if progress.bytes_to_copy else 1.0
    left = f", {seconds * (1 - share) / share:.0f} s left" if 0 < share < 1 else ""
    return f"{progress.phase}: {done} of {size(progress.bytes_to_copy)} ({share:.0%}){left}"


def is_of_trees(
    locations: Sequence[str],
    recursive: bool,
    filters: Filters,
    tree: tuple[TreeOptions, str | None],
) -> bool:
    """Whether a command is about more than one object: -r, several sources, or a pattern."""
    several = len(locations) > 2 and STANDARD not in locations
    options, report = tree
    patterns = options.globs and any(has_glob(each) for each in locations[:-1])
    if recursive or several or patterns or options.files_from is not None:
        return True
    if (
        report is not None
        or not filters.are_none
        or options != replace(TreeOptions(), globs=options.globs)
    ):
        raise InvalidInput(
            "filters, --report, --dry-run and the like are for trees, and this is one object",
            hint="With --recursive it is taken for a tree.",
        )
    return False


def source_and_target(locations: Sequence[str]) -> tuple[str, str]:
    """The two names of a copy of one object."""
    if len(locations) != 2:
        raise typer.BadParameter("a source and a target are needed", param_hint="SRC... DST")
    return locations[0], locations[1]


def refuse_single(**given: object) -> None:
    """Raise for a flag that says something of one object and was given for many."""
    for name, value in given.items():
        if value:
            raise InvalidInput(f"--{name.replace('_', '-')} is of one object, not of a tree")


def with_filters(options: TreeOptions, filters: Filters, **more: object) -> TreeOptions:
    """Options of a run with the filters and what else a command says."""
    return replace(options, filters=filters, **more)  # type: ignore[arg-type]


def parse_chunk(chunk: str | None) -> int | None:
    return None if chunk is None else parse_size(chunk)
