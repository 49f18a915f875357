"""``calque store buckets``: which buckets there are."""

from __future__ import annotations

from calque.cli.output import JsonFlag, as_json, table
from calque.cli.store.named_project import ProjectFlag, open_named_project


def buckets(project: ProjectFlag = None, json: JsonFlag = False) -> None:
    """List the buckets that the access may see, by name.

    calque store buckets --project ./data
    """
    with open_named_project(project) as opened:
        found = list(opened.list_buckets())
    if json:
        as_json(found)
    elif found:
        table(["name", "created", "placement"], [(b.name, b.created, b.placement) for b in found])
