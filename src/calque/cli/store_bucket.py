"""``calque store bucket``: make, list and remove the buckets of a store."""

from __future__ import annotations

from typing import Annotated

import typer

from calque.cli.output import JsonFlag, as_json, say, table
from calque.store.open_project import open_project

Names = Annotated[list[str] | None, typer.Argument(help="Buckets; none lists them all.")]
Where = Annotated[
    str,
    typer.Option(
        "--project",
        envvar="CALQUE_PROJECT",
        help="The store's folder, or grpc://host:port with CALQUE_ACCESS set.",
    ),
]


def bucket(
    names: Names = None,
    project: Where = "./data",
    delete: Annotated[bool, typer.Option("--delete", help="Remove empty buckets.")] = False,
    json: JsonFlag = False,
) -> None:
    """List the buckets of a store, make some, or remove empty ones.

    - `calque store bucket` lists them

    - `calque store bucket photos archive --project ./data` makes two

    - `calque store bucket photos --delete` removes one
    """
    with open_project(project) as opened:
        for name in names or []:
            if delete:
                opened.delete_bucket(name)
            else:
                opened.create_bucket(name)
            say(f"{'removed' if delete else 'made'} calque://{name}/")
        found = [] if names else [(each.name, each.created) for each in opened.list_buckets()]
    if json:
        as_json([{"bucket": name, "created": created} for name, created in found])
    elif not names:
        table(["bucket", "created"], found)
