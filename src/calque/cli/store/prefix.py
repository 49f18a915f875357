"""``calque store move-prefix`` and ``copy-prefix``: a folder of the store in one transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from calque.cli.output import JsonFlag, as_json, say, size
from calque.cli.store.named_project import ProjectFlag, open_named_project
from calque.errors import InvalidInput
from calque.values import count_of

if TYPE_CHECKING:
    from calque.store.uplink.verbs.move_prefix import PrefixResult

Source = Annotated[str, typer.Argument(help="Bucket and prefix: `photos/2025/`.")]
Target = Annotated[str, typer.Argument(help="Where they go: `archive/photos/2025/`.")]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace objects that stand at the new names.")
]
Verb = Callable[..., "PrefixResult"]


def move_prefix(
    source: Source,
    target: Target,
    project: ProjectFlag = None,
    overwrite: Overwrite = False,
    json: JsonFlag = False,
) -> None:
    """Move everything below a prefix in one transaction: all of it or nothing, no byte is read.

    calque store move-prefix photos/2025/ archive/photos/2025/ --project ./data
    """
    from calque.store import project as projects

    _run("moved", projects.Project.move_prefix, source, target, project, overwrite, json)


def copy_prefix(
    source: Source,
    target: Target,
    project: ProjectFlag = None,
    overwrite: Overwrite = False,
    json: JsonFlag = False,
) -> None:
    """Copy everything below a prefix in one transaction: all of it or nothing, no byte is read.

    calque store copy-prefix photos/2025/ archive/photos/2025/ --project ./data
    """
    from calque.store import project as projects

    _run("copied", projects.Project.copy_prefix, source, target, project, overwrite, json)


def _run(
    done: str, verb: Verb, source: str, target: str, where: str | None, overwrite: bool, json: bool
) -> None:
    places = (*_split(source), *_split(target))

    def tell(objects: int, bytes_: int) -> None:
        say(f"prepared {count_of(objects, 'object')}, {size(bytes_)}")

    with open_named_project(where) as opened:
        result = verb(opened, *places, overwrite=overwrite, progress=None if json else tell)
    if json:
        as_json({"source": source, "target": target, "objects": result.objects})
    else:
        say(f"{done} {count_of(result.objects, 'object')} from {source} to {target}")


def _split(place: str) -> tuple[str, str]:
    bucket, _, prefix = place.removeprefix("calque://").partition("/")
    if not bucket or (prefix and not prefix.endswith("/")):
        raise InvalidInput(
            f"{place!r} is not a bucket and a prefix", hint="A prefix ends in '/': photos/2025/"
        )
    return bucket, prefix
