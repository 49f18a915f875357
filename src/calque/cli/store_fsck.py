"""``calque store fsck``: is the store whole?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calque.cli.output import FAILED, JsonFlag, as_json, say, table
from calque.store.embedded import EmbeddedStore
from calque.store.upkeep.fsck import check_store


def fsck(
    folder: Annotated[Path, typer.Argument(help="The folder of the store.")],
    young: Annotated[
        bool,
        typer.Option(
            "--young", help="Report pieces of the last 48 hours as orphans too: nothing may run."
        ),
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Compare every row with every other, and the pieces on the nodes with the rows.

    Nothing is repaired. Exit code 1 when something is wrong.

    calque store fsck ./data
    """
    store = EmbeddedStore.open(folder)
    try:
        findings = check_store(store, young=young)
    finally:
        store.close()
    if json:
        as_json([finding._asdict() for finding in findings])
    elif findings:
        table(["what", "where"], findings)
    else:
        say("the store is whole")
    if findings:
        raise typer.Exit(FAILED)
