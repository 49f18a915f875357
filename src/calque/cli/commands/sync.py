"""``calque sync``: a tree made equal to another."""

from __future__ import annotations

from typing import Annotated

import typer

from calque.cli.commands.cp import Chunk, IfNotExists, Quiet
from calque.cli.flags.metrics_flags import MetricsWanted, sheet_of_metrics
from calque.cli.flags.shared_flags import with_sheet
from calque.cli.flags.tree_flags import (
    Verify,
    parse_chunk,
    sheet_of_deletes,
    sheet_of_filters,
    sheet_of_tree,
    with_filters,
)
from calque.cli.locations import Options, SourceOptions, TargetOptions
from calque.cli.output import JsonFlag
from calque.transfer.request.filters import Filters
from calque.transfer.request.options import TreeOptions

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
@with_sheet(sheet_of_filters, sheet_of_tree, sheet_of_deletes, sheet_of_metrics)
def sync(
    locations: Annotated[
        list[str], typer.Argument(metavar="SRC... DST", help="Folders: URIs or local paths.")
    ],
    filters: Filters,
    tree: tuple[TreeOptions, str | None],
    deletes: tuple[dict[str, object], bool],
    metrics: MetricsWanted,
    if_not_exists: IfNotExists = False,
    concurrent: Annotated[
        int, typer.Option("--concurrent", "-c", help="Requests in flight, over the whole tree.")
    ] = 16,
    chunk: Chunk = None,
    verify: Verify = False,
    option: Options = None,
    source_option: SourceOptions = None,
    target_option: TargetOptions = None,
    quiet: Quiet = False,
    json: JsonFlag = False,
) -> None:
    """Make the target like the source: copy what is new or differs; with --delete, nothing else.

    `SRC/` means what lies below SRC; without the slash the folder keeps its name at the target.
    Nothing is deleted before all copies have ended well, after any error, or for an empty source.

    Examples:

    - `calque sync ./site/ s3://www/` uploads what has changed

    - `calque sync s3://data/2026/ s3://backup/2026/ --delete --max-delete 10%`

    - `calque sync ./photos/ az://archive/photos/ --exclude '*.tmp' --dry-run`
    """
    from calque.cli.trees import TreeCommand

    options, report = tree
    asked, yes = deletes
    chosen = with_filters(
        options,
        filters,
        if_not_exists=if_not_exists,
        concurrent=concurrent,
        chunk=parse_chunk(chunk),
        verify=verify,
        **asked,
    )
    TreeCommand(
        "sync",
        locations,
        chosen,
        of_source=[*(option or ()), *(source_option or ())],
        of_target=[*(option or ()), *(target_option or ())],
        report=report,
        yes=yes,
        quiet=quiet,
        json=json,
        metrics=metrics,
    ).run()
