"""``calque mv``: one object moved."""

from __future__ import annotations

import time

import typer

from calque.cli.copying import Copied, CopyJob
from calque.cli.cp import Chunk, Concurrent, IfNotExists, Quiet, Stream, streaming, summary
from calque.cli.output import JsonFlag, as_json, say, size
from calque.cli.places import Options, Place, Source, Target
from calque.cli.quantities import parse_size
from calque.errors import ConditionNotMatch, Unsupported
from calque.operator.options import CopyKeywords
from calque.operator.service import Renaming
from calque.values import Metadata

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")


@app.command()
def mv(
    source: Source,
    target: Target,
    if_not_exists: IfNotExists = False,
    concurrent: Concurrent = 8,
    chunk: Chunk = None,
    stream: Stream = False,
    option: Options = None,
    quiet: Quiet = False,
    json: JsonFlag = False,
) -> None:
    """Move one object: renamed where the service can, else copied and then deleted.

    The source is deleted only once the target is complete, and only if it is still the object
    that was copied.

    Examples:

    - `calque mv draft.csv final.csv` renames in one moment on one file system

    - `calque mv calque://photos/a.jpg calque://archive/2026/` is one transaction of the store

    - `calque mv s3://landing/a.csv s3://archive/2026/` copies inside S3, then deletes
    """
    origin = Place.of(source, option).file()
    goal = Place.of(target, option).receiving(origin)
    moved = _rename(origin, goal, if_not_exists)
    if moved is None:
        options: CopyKeywords = {
            "if_not_exists": if_not_exists,
            "concurrent": concurrent,
            "chunk": None if chunk is None else parse_size(chunk),
            "stream": streaming(origin, goal, stream),
        }
        moved = CopyJob(origin, goal, options, quiet=quiet or json).run()
        _delete_pinned(origin, moved.source_metadata)
    if json:
        as_json(summary(moved))
    elif not quiet:
        say(f"moved {size(moved.bytes)} {moved.route}: {moved.target}")


def _rename(source: Place, target: Place, if_not_exists: bool) -> Copied | None:
    """The move as one rename; None where the service has none, or cannot between these two."""
    service = source.operator.service
    if not isinstance(service, Renaming) or source.operator.scheme != target.operator.scheme:
        return None
    begun, found = time.monotonic(), source.operator.stat(source.path)
    into = target.operator.service
    try:
        made = service.rename(found, target.path, if_not_exists=if_not_exists, into=into)
    except Unsupported:
        return None
    return Copied(
        source=source.location,
        target=target.location,
        bytes=made.size,
        seconds=time.monotonic() - begun,
        route="renamed",
        resumed_from=0,
        metadata=made,
        source_metadata=found,
    )


def _delete_pinned(source: Place, copied: Metadata) -> None:
    """Delete what was copied, and nothing newer."""
    operator, can = source.operator, source.operator.capability
    if can.delete_with_if_match:
        operator.delete(source.path, if_match=copied.pin)
        return
    # as near as such a service lets us come: a change in the moment between the two is not seen
    if operator.stat(source.path).pin != copied.pin:
        raise ConditionNotMatch(
            f"{source.location} changed after it was copied, so it was not deleted",
            hint="The target holds the old content. Move it again for the new one.",
        )
    operator.delete(source.path)
