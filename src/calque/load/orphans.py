"""Data files of a load that no commit names: found by the load id in their names, and removed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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
    operator, base = lake.place.operator, lake.place.base
    kept = set(keep)
    # By name alone: names are unique, while one object may be listed under several spellings.
    names = {path.rpartition("/")[2] for path in kept}
    removed = 0
    with suppress(CalqueError):
        for found in _candidates(operator, base + lake.data_prefix, load_id, kept, base):
            if found.rpartition("/")[2] not in names:
                operator.delete(found)
                removed += 1
    return removed


def _candidates(
    operator: Operator, folder: str, load_id: str, kept: set[str], base: str
) -> Iterator[str]:
    """Paths of the load's data files: in the folder itself, and in partitions below it.

    A load that kept files is looked for where it kept them; one that was aborted may have written
    into any partition.
    """
    for found in operator.list(f"{folder}{load_id}-", recursive=False):
        yield found.path
    if kept:
        below = sorted({base + path[: path.rfind("/") + 1] for path in kept} - {folder})
        for partition in below:
            for found in operator.list(f"{partition}{load_id}-", recursive=False):
                yield found.path
        return
    for entry in operator.list(folder, recursive=False):
        if entry.is_dir and "=" in entry.path[len(folder) :]:
            for found in operator.list(entry.path):
                if found.path.rpartition("/")[2].startswith(f"{load_id}-"):
                    yield found.path


def data_files_exist(lake: Lake, manifest: Manifest) -> bool:
    """Whether every data file of a prepared load is still there, whole."""
    operator, base = lake.place.operator, lake.place.base
    for action in manifest.actions:
        if "add" not in action:
            continue
        try:
            if operator.stat(base + action["add"]).size != action["size"]:
                return False
        except NotFound:
            return False
    return True
