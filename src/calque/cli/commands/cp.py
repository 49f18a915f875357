"""``calque cp``: one object copied."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Annotated

import typer

from calque.cli.commands.verify import compare
from calque.cli.flags.metrics_flags import MetricsWanted, sheet_of_metrics
from calque.cli.flags.quantities import parse_duration
from calque.cli.flags.shared_flags import with_sheet
from calque.cli.flags.tree_flags import (
    Recursive,
    is_of_trees,
    parse_chunk,
    refuse_single,
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
from calque.cli.standard_streams import (
    STANDARD,
    refuse_unfit,
    show_on_standard_output,
    store_standard_input,
)
from calque.errors import NotFound
from calque.transfer.request.filters import Filters
from calque.transfer.request.options import TreeOptions

if TYPE_CHECKING:
    from calque.cli.copy_job import CopyJob, CopyReport
    from calque.operator.options import CopyKeywords, Streaming

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")

IfNotExists = Annotated[
    bool, typer.Option("--if-not-exists", help="Fail, atomically, where the target exists already.")
]
Concurrent = Annotated[
    int | None,
    typer.Option(
        "--concurrent",
        "-c",
        help="Requests in flight at once, over a whole tree.",
        show_default="8 of one object, 16 of a tree",
    ),
]
Chunk = Annotated[
    str | None, typer.Option("--chunk", metavar="SIZE", help="Bytes of a part or step: 8MiB, 1G.")
]
Stream = Annotated[
    bool,
    typer.Option(
        "--stream", help="Let every byte pass through this machine, as between two services."
    ),
]
TimeLimit = Annotated[
    str | None, typer.Option("--timeout", metavar="TIME", help="Give up after this long: 90s, 2h.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]


Locations = Annotated[
    list[str],
    typer.Argument(
        metavar="SRC... DST",
        help="URIs or local paths; a target that ends in / keeps the source's name.",
    ),
]


@app.command()
@with_sheet(sheet_of_filters, sheet_of_tree, sheet_of_metrics)
def cp(
    locations: Locations,
    filters: Filters,
    tree: tuple[TreeOptions, str | None],
    metrics: MetricsWanted,
    recursive: Recursive = False,
    if_not_exists: IfNotExists = False,
    if_match: Annotated[
        str | None, typer.Option(metavar="ETAG", help="Replace the target only if it is this one.")
    ] = None,
    source_version: Annotated[
        str | None, typer.Option(metavar="ID", help="Copy this version of the source.")
    ] = None,
    concurrent: Concurrent = None,
    chunk: Chunk = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on where an earlier copy stopped; stop resumably.")
    ] = False,
    abort: Annotated[
        bool,
        typer.Option("--abort", help="Give up an earlier copy with --resume: remove what it left."),
    ] = False,
    verify: Annotated[
        bool | None,
        typer.Option(
            "--verify/--no-verify",
            help="Compare both sides again at the end, or trust even their sizes.",
            show_default="sizes, and checksums where both sides keep one",
        ),
    ] = None,
    stream: Stream = False,
    carry_class: Annotated[
        bool, typer.Option("--carry-class", help="Keep the source's storage class.")
    ] = False,
    carry_tags: Annotated[
        bool, typer.Option("--carry-tags/--no-carry-tags", help="Take tags along.")
    ] = True,
    timeout: TimeLimit = None,
    option: Options = None,
    source_option: SourceOptions = None,
    target_option: TargetOptions = None,
    quiet: Quiet = False,
    json: JsonFlag = False,
) -> None:
    """Copy an object, or with -r a tree: atomically, with progress, resumable.

    Each target is as it was or complete, never half. Inside one service the bytes do not pass
    through this machine. Of trees only what is new or differs is copied, and nothing is deleted;
    `SRC/` means what lies below SRC, without the slash the folder keeps its name.

    Examples:

    - `calque cp report.csv backup/report.csv` copies a file; durable when it returns

    - `calque cp s3://landing/big.parquet s3://archive/ --concurrent 16 --resume` may be stopped

    - `calque cp s3://a/x gs://b/x --stream --if-not-exists` goes through this machine

    - `calque cp -r ./site/ s3://www/ --exclude '*.tmp' --dry-run` says what would be copied

    - `calque cp 's3://landing/2026-*.csv' ./today/` takes what a pattern matches

    - `pg_dump db | calque cp - s3://backup/db.sql` stores what is piped in, whole or not at all
    """
    from calque.cli.copy_job import CopyJob
    from calque.operator.layers import Deadline, default_layers

    if is_of_trees(locations, recursive, filters, tree):
        chosen = with_filters(
            tree[0],
            filters,
            if_not_exists=if_not_exists,
            concurrent=16 if concurrent is None else concurrent,
            chunk=parse_chunk(chunk),
            carry_class=carry_class,
            carry_tags=carry_tags,
            verify=bool(verify),
        )
        refuse_single(if_match=if_match, source_version=source_version, stream=stream, abort=abort)
        trees = import_module("calque.cli.trees")  # not paid for by a copy of one object
        trees.TreeCommand(
            "cp",
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
    source, target = source_and_target(locations)
    layers = default_layers()
    if timeout is not None:
        layers = (Deadline.after(parse_duration(timeout).total_seconds()), *layers)
    of_source = [*(option or ()), *(source_option or ())]
    of_target = [*(option or ()), *(target_option or ())]
    options: CopyKeywords = {
        "if_not_exists": if_not_exists,
        "if_match": if_match,
        "source_version": source_version,
        "concurrent": 8 if concurrent is None else concurrent,
        "chunk": parse_chunk(chunk),
        "carry_class": carry_class,
        "carry_tags": carry_tags,
        "verify": "none" if verify is False else "checksum",
        # In parts of its own a copy through this machine can be gone on with.
        "stream_parts": resume,
    }
    # A pipe has no name, no size and no second reading: it takes a way of its own.
    if STANDARD in (source, target):
        refuse_unfit(source, target, options, resume=resume)
        if source == STANDARD:
            goal = Location.of(target, of_target, layers=layers)
            report(store_standard_input(goal, options), None, json=json, quiet=quiet)
        else:
            show_on_standard_output(Location.of(source, of_source, layers=layers).file(), options)
        return
    refuse_idle_options([source], target, of_source, of_target)
    origin = Location.of(source, of_source, layers=layers).file()
    goal = Location.of(target, of_target, layers=layers).target_for(origin)
    options["stream"] = stream_option(origin, goal, stream)
    if abort:
        _abort(CopyJob(origin, goal, options), json=json)
        return
    copied = CopyJob(origin, goal, options, resume=resume, quiet=quiet or json).run()
    proof = compare(origin, goal, copied) if verify else None
    report(copied, proof, json=json, quiet=quiet)


def _abort(job: CopyJob, *, json: bool) -> None:
    was_left = job.abort()
    if json:
        as_json({"source": job.source.uri, "target": job.target.uri, "aborted": was_left})
    elif was_left:
        say(f"gave up the copy to {job.target.uri}; what it left is removed")
    else:
        raise NotFound(
            f"no earlier copy of {job.source.uri} to {job.target.uri} was left here",
            hint="`calque sweep` finds what copies from other machines have left.",
        )


def stream_option(source: Location, target: Location, asked: bool) -> Streaming:
    """Between a local file and a service the bytes pass through this machine, whatever one asks."""
    return asked or ("auto" if source.is_local != target.is_local else False)


def report(copied: CopyReport, proof: str | None, *, json: bool, quiet: bool) -> None:
    """What a copy has done."""
    if json:
        as_json({**summary(copied), "verified": proof})
    elif not quiet:
        speed = f", {size(copied.bytes / copied.seconds)}/s" if copied.seconds > 0.01 else ""
        before = f", {size(copied.resumed_from)} of it before" if copied.resumed_from else ""
        checked = f", verified by {proof}" if proof else ""
        say(f"copied {size(copied.bytes)} {copied.route}{speed}{before}{checked}: {copied.target}")


def summary(copied: CopyReport) -> dict[str, object]:
    """A copy as plain data."""
    made = copied.metadata
    return {
        "source": copied.source,
        "target": copied.target,
        "bytes": copied.bytes,
        "seconds": round(copied.seconds, 3),
        "route": copied.route,
        "resumed_from": copied.resumed_from,
        "etag": made.etag,
        "version": made.version,
        "last_modified": made.last_modified,
    }
