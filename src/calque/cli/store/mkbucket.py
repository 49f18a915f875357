"""``calque store mkbucket``: make a bucket."""

from __future__ import annotations

from typing import Annotated

import typer

from calque.cli.output import JsonFlag, as_json, say
from calque.cli.store.named_project import ProjectFlag, open_named_project


def mkbucket(
    name: Annotated[str, typer.Argument(help="3 to 63 of a–z, 0–9, '-' and '.'.")],
    project: ProjectFlag = None,
    placement: Annotated[int, typer.Option(help="Only nodes of this placement; 0: any.")] = 0,
    json: JsonFlag = False,
) -> None:
    """Make an empty bucket.

    calque store mkbucket photos --project ./data
    """
    with open_named_project(project) as opened:
        made = opened.create_bucket(name, placement=placement)
    if json:
        as_json(made)
    else:
        say(f"made bucket {made.name}")
