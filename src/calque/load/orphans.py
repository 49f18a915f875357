"""Data files of a load that no commit names: found by the load id in their names, and removed."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from calque.errors import CalqueError, NotFound
from calque.ledger.finish import Manifest
from calque.load.tables import Lake
from calque.operator import Operator


def remove_orphans(lake: Lake, load_id: str, keep: Iterable[str]) -> int:
    """Remove what losing attempts of a finished load left behind; how many files.

    Only a load that is over may be cleaned. Cleaning is a courtesy: what cannot be removed now is
    left for the table's own vacuum, since no reader ever sees it.
    """
    operator, base = Operator.locate(lake.root.rstrip("/") + "/")
    kept = set(keep)
    folders = {path.rpartition("/")[0] for path in kept} | {lake.data_prefix.rstrip("/")}
    removed = 0
    with suppress(CalqueError):
        for folder in sorted(folders):
            start = f"{base}{folder}/{load_id}-" if folder else f"{base}{load_id}-"
            for found in operator.list(start):
                if found.path[len(base) :] not in kept:
                    operator.delete(found.path)
                    removed += 1
    return removed


def data_files_exist(lake: Lake, manifest: Manifest) -> bool:
    """Whether every data file of a prepared load is still there, whole."""
    operator, base = Operator.locate(lake.root.rstrip("/") + "/")
    for action in manifest.actions:
        if "add" not in action:
            continue
        try:
            if operator.stat(base + action["add"]).size != action["size"]:
                return False
        except NotFound:
            return False
    return True
