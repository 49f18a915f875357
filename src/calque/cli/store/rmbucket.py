"""``calque store rmbucket``: delete a bucket."""

from __future__ import annotations

from typing import Annotated

import typer

from calque.cli.output import JsonFlag, as_json, say
from calque.cli.store.named_project import ProjectFlag, open_named_project
from calque.values import count_of


def rmbucket(
    name: Annotated[str, typer.Argument(help="The bucket.")],
    project: ProjectFlag = None,
    with_objects: Annotated[
        bool, typer.Option("--with-objects", help="Delete what is in it, too.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Delete an empty bucket, or one with everything in it. Copies in other buckets stay whole.

    calque store rmbucket photos --project ./data

    calque store rmbucket photos --with-objects
    """
    with open_named_project(project) as opened:
        deleted = opened.delete_bucket(name, with_objects=with_objects)
    if json:
        as_json({"bucket": name, "deleted_objects": deleted})
    else:
        say(
            f"deleted bucket {name} and {count_of(deleted, 'object')} in it"
            if deleted
            else f"deleted bucket {name}"
        )
