"""``calque store backup``: a copy of a store that is in use."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calque.cli.flags.upkeep_flags import open_store, row_bar
from calque.cli.output import FAILED, JsonFlag, as_json, record

if TYPE_CHECKING:
    from calque.store.upkeep.backup import StoreCopyReport

StoreFolder = Annotated[
    Path,
    typer.Option("--project", envvar="CALQUE_PROJECT", help="The folder of the store."),
]


def backup(
    target: Annotated[Path, typer.Argument(help="Where the backup goes: a new or empty folder.")],
    project: StoreFolder = Path("data"),
    json: JsonFlag = False,
) -> None:
    """Copy a store as it is at one moment, while others go on using it.

    The backup is a store of its own: it can be opened, checked and restored. It holds the secrets
    of the store, too. Exit code 1 when an object of the store cannot be read any more.

    calque store backup ./backups/monday --project ./data
    """
    from calque.store.upkeep.backup import copy_store

    with open_store(project) as store, row_bar("segments") as tell:
        copied = copy_store(store, target, tell=tell)
    show(copied, json)


def show(copied: StoreCopyReport, json: bool) -> None:
    """What was copied; exit code 1 when something is lost."""
    told = asdict(copied)
    if json:
        as_json(told)
    else:
        record(told)
    if copied.lost_segments:
        raise typer.Exit(FAILED)
