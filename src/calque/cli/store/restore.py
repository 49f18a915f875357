"""``calque store restore``: a store out of a backup."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calque.cli.flags.upkeep_flags import open_store, row_bar
from calque.cli.output import JsonFlag
from calque.cli.store.backup import StoreFolder, show


def restore(
    backup: Annotated[Path, typer.Argument(help="The folder of the backup.")],
    project: StoreFolder = Path("data"),
    node: Annotated[
        list[str] | None,
        typer.Option(help="A root for pieces, once for each node (none: in the folder)."),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(help="The URL of an empty database; without it SQLite in the folder."),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Make a store in a new or empty folder out of a backup, which stays as it is.

    calque store restore ./backups/monday --project ./data
    """
    from calque.store.upkeep.backup import copy_store

    with open_store(backup) as store, row_bar("segments") as tell:
        copied = copy_store(store, project, database=database, nodes=node or (), tell=tell)
    show(copied, json)
