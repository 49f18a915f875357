"""``calque check``: whether two trees are equal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from calque.cli.flags.shared_flags import with_sheet
from calque.cli.flags.tree_flags import sheet_of_filters
from calque.cli.locations import (
    Options,
    SourceOptions,
    TargetOptions,
    refuse_idle_options,
    settle,
    settle_alike,
)
from calque.cli.output import JsonFlag, as_json, say
from calque.errors import ConfigInvalid
from calque.transfer.request.filters import Filters
from calque.transfer.request.options import By, TreeOptions
from calque.values import printable

if TYPE_CHECKING:
    from calque.transfer.check import CheckReport, CheckRow

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
@with_sheet(sheet_of_filters)
def check(
    locations: Annotated[
        list[str],
        typer.Argument(metavar="SRC... DST", help="Folders; with --against only the target."),
    ],
    filters: Filters,
    by: Annotated[
        By, typer.Option("--by", help="What the listings say, sizes, checksums, or all bytes.")
    ] = "listing",
    download: Annotated[
        bool, typer.Option("--download", help="Compare the bytes of both: --by download.")
    ] = False,
    against: Annotated[
        str | None,
        typer.Option("--against", metavar="REPORT", help="Prove DST by a report's checksums."),
    ] = None,
    show_all: Annotated[bool, typer.Option("--all", "-a", help="Rows of equal ones too.")] = False,
    concurrent: Annotated[
        int, typer.Option("--concurrent", "-c", min=1, help="Requests in flight at once.")
    ] = 16,
    option: Options = None,
    source_option: SourceOptions = None,
    target_option: TargetOptions = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="The exit code alone.")] = False,
    json: JsonFlag = False,
) -> None:
    """Compare two trees; nothing is changed.

    A row is `+` only at the source, `-` only at the target, `*` different, `!` could not be told,
    `=` equal. Exit codes: 0 equal, 1 different, 3 could not tell of some.

    Examples:

    - `calque check ./site/ s3://www/` by what the listings say: checksums, else sizes

    - `calque check s3://a/x/ gs://b/x/ --download` reads both, byte for byte

    - `calque check --against report.jsonl s3://b/x/` proves a target by recorded checksums
    """
    from calque.cli.trees import progress_shown
    from calque.transfer.check import check_against, check_request
    from calque.transfer.report.progress import TreeProgress
    from calque.transfer.report.shown_progress import CLEAR_LINE
    from calque.transfer.request.tree_request import TreeRequest

    rows: list[CheckRow] = []
    progress = TreeProgress(phase="comparing")
    shown = progress_shown(progress, show=not (quiet or json))

    def show(row: CheckRow) -> None:
        if row.sign == "=" and not show_all:
            return
        if json:
            rows.append(row)
        elif not quiet:
            why = f"  ({row.why or row.rule})" if row.sign not in "=+-" else ""
            if sys.stderr.isatty():
                sys.stderr.write(CLEAR_LINE)  # of the progress, which is written again
            print(f"{row.sign} {printable(row.path)}{why}", flush=sys.stderr.isatty())

    of_source = [*(option or ()), *(source_option or ())]
    of_target = [*(option or ()), *(target_option or ())]
    *sources, target = locations
    goal, goal_options = settle(target, of_target)
    if against is not None:
        if sources:
            raise ConfigInvalid("--against compares one target with a report: name no source")
        with shown:
            found = check_against(
                against,
                goal,
                target_options=goal_options,
                concurrent=concurrent,
                on_event=show,
                progress=progress,
            )
    else:
        if not sources:
            raise typer.BadParameter("a source and a target are needed", param_hint="SRC... DST")
        refuse_idle_options(sources, target, of_source, of_target)
        uris, source_options = settle_alike(sources, of_source)
        request = TreeRequest(
            kind="cp",
            sources=uris,
            target=goal,
            options=TreeOptions(filters=filters, concurrent=concurrent),
            source_options=source_options,
            target_options=goal_options,
        )
        with shown:
            found = check_request(request, "download" if download else by, show, progress)
    if json:
        as_json({**found.to_json(), "rows": rows})
    elif not quiet:
        say(_summary(found))
    if found.exit_code:
        raise typer.Exit(found.exit_code)


def _summary(found: CheckReport) -> str:
    ways = ", ".join(f"{count} by {rule}" for rule, count in found.rules.items())
    equal = f"{found.counts['=']} equal" + (f" ({ways})" if ways else "")
    words = {"+": "only at the source", "-": "only at the target", "*": "different", "!": "unsure"}
    return ", ".join(
        [equal, *(f"{found.counts[sign]} {word}" for sign, word in words.items())]  # type: ignore[index]
    )
