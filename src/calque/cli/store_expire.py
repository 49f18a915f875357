"""``calque store expire``: remove what is over."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from calque.cli.output import JsonFlag, as_json, record
from calque.store.embedded import EmbeddedStore
from calque.store.maintenance.sweep import Orphans, sweep_store


def expire(
    folder: Annotated[Path, typer.Argument(help="The folder of the store.")],
    all_orphans: Annotated[
        bool,
        typer.Option("--all-orphans", help="Remove orphaned pieces even where most would go."),
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Delete expired objects, abandoned uploads and copies, pieces that waited for a node, and
    pieces of killed uploads after two days.

    Safe at any time. `calque serve` does it by itself, once an hour.

    calque store expire ./data
    """
    store = EmbeddedStore.open(folder)
    try:
        orphans = Orphans.REMOVE_MANY if all_orphans else Orphans.REMOVE
        swept = asdict(sweep_store(store, orphans=orphans))
    finally:
        store.close()
    if json:
        as_json(swept)
    else:
        record(swept)
