"""``calque mv``: one object moved."""

from __future__ import annotations

import time
from importlib import import_module
from typing import TYPE_CHECKING

import typer

from calque.cli.commands.cp import (
    Chunk,
    Concurrent,
    IfNotExists,
    Locations,
    Quiet,
    Stream,
    stream_option,
    summary,
)
from calque.cli.flags.metrics_flags import MetricsWanted, sheet_of_metrics
from calque.cli.flags.shared_flags import with_sheet
from calque.cli.flags.tree_flags import (
    Recursive,
    Verify,
    is_of_trees,
    parse_chunk,
    sheet_of_filters,
    sheet_of_tree,
    source_and_target,
    with_filters,
)
from calque.cli.locations import (
    Location,
    Options,
    SourceOptions,
    TargetOptions,
    refuse_idle_options,
)
from calque.cli.output import JsonFlag, as_json, say, size
from calque.cli.standard_streams import STANDARD
from calque.errors import ConfigInvalid, InvalidInput
from calque.transfer.request.filters import Filters
from calque.transfer.request.options import TreeOptions

if TYPE_CHECKING:
    from calque.cli.copy_job import CopyReport
    from calque.operator.options import CopyKeywords, CopyOptions

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
@with_sheet(sheet_of_filters, sheet_of_tree, sheet_of_metrics)
def mv(
    locations: Locations,
    filters: Filters,
    tree: tuple[TreeOptions, str | None],
    metrics: MetricsWanted,
    recursive: Recursive = False,
    if_not_exists: IfNotExists = False,
    concurrent: Concurrent = None,
    chunk: Chunk = None,
    verify: Verify = False,
    stream: Stream = False,
    option: Options = None,
    source_option: SourceOptions = None,
    target_option: TargetOptions = None,
    quiet: Quiet = False,
    json: JsonFlag = False,
) -> None:
    """Move an object, or with -r a tree: renamed where the service can, else copied, then deleted.

    Each source is deleted only once the target is complete, only if it is still the object that
    was copied, and only if both are seen to be two objects.

    Examples:

    - `calque mv draft.csv final.csv` renames in one moment on one file system

    - `calque mv calque://photos/a.jpg calque://archive/2026/` is one transaction of the store

    - `calque mv s3://landing/a.csv s3://archive/2026/` copies inside S3, then deletes
    """
    from calque.cli.copy_job import CopyJob
    from calque.operator.move import delete_moved
    from calque.operator.options import CopyOptions

    if is_of_trees(locations, recursive, filters, tree):
        chosen = with_filters(
            tree[0],
            filters,
            if_not_exists=if_not_exists,
            concurrent=16 if concurrent is None else concurrent,
            chunk=parse_chunk(chunk),
            verify=verify,
        )
        trees = import_module("calque.cli.trees")  # not paid for by a copy of one object
        trees.TreeCommand(
            "mv",
            locations,
            chosen,
            of_source=[*(option or ()), *(source_option or ())],
            of_target=[*(option or ()), *(target_option or ())],
            report=tree[1],
            quiet=quiet,
            json=json,
            metrics=metrics,
        ).run()
        return
    metrics.refuse_single()
    if verify:
        raise ConfigInvalid("--verify of a move is of a tree", hint="With -r it is taken for one.")
    source, target = source_and_target(locations)
    if STANDARD in (source, target):
        raise InvalidInput("a pipe cannot be moved", hint="calque cp takes - for it.")
    of_source = [*(option or ()), *(source_option or ())]
    of_target = [*(option or ()), *(target_option or ())]
    refuse_idle_options([source], target, of_source, of_target)
    origin = Location.of(source, of_source).file()
    goal = Location.of(target, of_target).target_for(origin)
    keywords: CopyKeywords = {
        "if_not_exists": if_not_exists,
        "concurrent": 8 if concurrent is None else concurrent,
        "chunk": parse_chunk(chunk),
        "stream": stream_option(origin, goal, stream),
    }
    options = CopyOptions(**keywords)
    moved = _rename(origin, goal, options)
    if moved is None:
        moved = CopyJob(origin, goal, keywords, quiet=quiet or json).run()
        # The source goes last, and only when the target is seen to be another object.
        service, into = origin.operator.service, goal.operator.service
        delete_moved(service, moved.source_metadata, into, goal.path, options)
    if json:
        as_json(summary(moved))
    elif not quiet:
        say(f"moved {size(moved.bytes)} {moved.route}: {moved.target}")


def _rename(source: Location, target: Location, options: CopyOptions) -> CopyReport | None:
    """The move as one rename; None where the service has none, or cannot between these two."""
    from calque.cli.copy_job import CopyReport
    from calque.operator.move import rename_at_once
    from calque.operator.service import Renaming

    service, into = source.operator.service, target.operator.service
    if not isinstance(service, Renaming):
        return None
    begun, found = time.monotonic(), source.operator.stat(source.path)
    made = rename_at_once(service, found, into, target.path, options)
    if made is None:
        return None
    return CopyReport(
        source=source.uri,
        target=target.uri,
        bytes=made.size,
        seconds=time.monotonic() - begun,
        route="renamed",
        resumed_from=0,
        metadata=made,
        source_metadata=found,
    )
