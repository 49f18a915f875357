"""``calque store add-node``: more disks, or a new one in the place of one that is gone."""

from __future__ import annotations

from typing import Annotated

import typer

from calque.cli.flags.upkeep_flags import Folder
from calque.cli.output import JsonFlag, as_json, say, table


def add_node(
    folder: Folder,
    roots: Annotated[
        list[str], typer.Argument(metavar="ROOT...", help="A root for pieces (folder, s3://…).")
    ],
    json: JsonFlag = False,
) -> None:
    """Give a store more nodes: uploads, `repair` and `exit` use them from then on.

    What is stored already stays where it is. A running `calque serve` needs no restart. A new disk
    at the path of a lost one is a new node: give the old one up first, then add it, then repair.

    calque store repair ./data --gone /disk2

    calque store add-node ./data /disk2

    calque store repair ./data
    """
    from calque.store.embedded.add_nodes import add_nodes

    nodes = add_nodes(folder, roots)
    if json:
        as_json([{"node": e.name, "state": e.state, "root": e.address} for e in nodes])
    else:
        table(["node", "state", "root"], [(e.name, e.state, e.address) for e in nodes])
        say(f"{len(roots)} more; calque store repair builds what was waiting for room")
