"""``calque store mkbucket``: make a bucket."""

from __future__ import annotations

from typing import Annotated

import typer

from calque.cli.output import JsonFlag, as_json, say

Project = Annotated[
    str,
    typer.Option(
        envvar="CALQUE_PROJECT",
        show_envvar=True,
        help="The folder of the store, or grpc://host:port (then CALQUE_ACCESS is needed).",
    ),
]


def mkbucket(
    name: Annotated[str, typer.Argument(help="3 to 63 of a–z, 0–9, '-' and '.'.")],
    project: Project = "./data",
    placement: Annotated[int, typer.Option(help="Only nodes of this placement; 0: any.")] = 0,
    json: JsonFlag = False,
) -> None:
    """Make an empty bucket.

    calque store mkbucket photos --project ./data
    """
    from calque.store.open_project import open_project

    with open_project(project, create=False) as opened:
        made = opened.create_bucket(name, placement=placement)
    if json:
        as_json(made)
    else:
        say(f"made bucket {made.name}")
