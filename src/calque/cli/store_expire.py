"""``calque store expire``: remove what is over."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from calque.cli.output import JsonFlag, as_json, record
from calque.store.embedded import EmbeddedStore
from calque.store.sweep import sweep_store


def expire(
    folder: Annotated[Path, typer.Argument(help="The folder of the store.")],
    json: JsonFlag = False,
) -> None:
    """Delete expired objects, abandoned uploads and copies, and pieces that waited for a node.

    Safe at any time. `calque serve` does it by itself, once an hour.

    calque store expire ./data
    """
    store = EmbeddedStore.open(folder)
    try:
        swept = asdict(sweep_store(store))
    finally:
        store.close()
    if json:
        as_json(swept)
    else:
        record(swept)
