"""``calque store buckets``: which buckets there are."""

from __future__ import annotations

from calque.cli.output import JsonFlag, as_json, table
from calque.cli.store.mkbucket import Project


def buckets(project: Project = "./data", json: JsonFlag = False) -> None:
    """List the buckets that the access may see, by name.

    calque store buckets --project ./data
    """
    from calque.store.open_project import open_project

    with open_project(project, create=False) as opened:
        found = list(opened.list_buckets())
    if json:
        as_json(found)
    elif found:
        table(["name", "created", "placement"], [(b.name, b.created, b.placement) for b in found])
