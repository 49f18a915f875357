"""``calque rm``: objects deleted."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

from calque.cli.flags.shared_flags import with_sheet
from calque.cli.flags.tree_flags import (
    KeepJournal,
    Recursive,
    Restart,
    sheet_of_filters,
)
from calque.cli.locations import Location, Options
from calque.cli.output import PARTLY, JsonFlag, as_json, say
from calque.errors import CalqueError, ConfigInvalid, NotFound
from calque.transfer.request.filters import NO_FILTERS, Filters

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
@with_sheet(sheet_of_filters)
def rm(
    locations: Annotated[
        list[str], typer.Argument(metavar="LOCATION...", help="URIs or local paths.")
    ],
    force: Annotated[
        bool, typer.Option("--force", "-f", help="What is not there is no error.")
    ] = False,
    if_match: Annotated[
        str | None, typer.Option(metavar="ETAG", help="Delete only if it is still this one.")
    ] = None,
    filters: Filters = NO_FILTERS,
    recursive: Recursive = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", "-n", help="Only say what would be deleted.")
    ] = False,
    report: Annotated[
        str | None,
        typer.Option("--report", metavar="FILE", help="A row for each object of a tree."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before deleting.")] = False,
    restart: Restart = False,
    journal: KeepJournal = True,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
    option: Options = None,
    json: JsonFlag = False,
) -> None:
    """Delete objects, or with -r trees. Each is tried; exit code 3 when some could not be deleted.

    Of trees all is listed first, and an object that was rewritten since stays. A run that was
    stopped or killed is gone on with by the same command, or by `calque jobs resume`.

    Examples:

    - `calque rm s3://landing/a.csv s3://landing/b.csv`

    - `calque rm -r s3://landing/2025/ --exclude '*.keep' --dry-run` says what would go

    - `calque rm -f maybe.csv` does not mind when it is gone already
    """
    from calque.transfer.plan.places import has_glob
    from calque.transfer.request.options import TreeOptions

    if recursive or any(has_glob(each) for each in locations):
        if if_match is not None:
            raise ConfigInvalid("--if-match is of one object, not of a tree")
        trees = import_module("calque.cli.trees")  # not paid for by the delete of one object
        options = TreeOptions(filters=filters, dry_run=dry_run, restart=restart, journal=journal)
        request = trees.removal_request(locations, options, given=option or (), report=report)
        trees.remove_and_show(request, yes=yes, quiet=quiet, json=json)
        return
    if dry_run or report is not None or not filters.are_none:
        raise ConfigInvalid("filters, --dry-run and --report are for trees", hint="Say -r.")
    deleted: list[str] = []
    failed: list[tuple[str, CalqueError]] = []
    for uri in locations:
        try:
            _delete(Location.of(uri, option).file(), force, if_match)
            deleted.append(uri)
        except CalqueError as error:
            failed.append((uri, error))
    if len(locations) == 1 and failed:
        raise failed[0][1]
    if json:
        as_json({"deleted": deleted, "failed": {name: str(reason) for name, reason in failed}})
    for _, reason in failed:
        say(f"error: {reason}")
    if failed:
        raise typer.Exit(PARTLY)


def _delete(location: Location, force: bool, if_match: str | None) -> None:
    if not force and not location.operator.exists(location.path):
        raise NotFound(f"{location.uri} does not exist", hint="With --force this is no error.")
    location.operator.delete(location.path, if_match=if_match)
