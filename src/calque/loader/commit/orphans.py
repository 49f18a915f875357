"""Data files of a load that no commit names: found by the load id in their names, and removed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from calque.errors import CalqueError, NotFound
from calque.ledger.manifest import Manifest
from calque.loader.commit.tables import Lake
from calque.loader.model.plan import is_data_file_of
from calque.operator import Operator


def remove_orphans(lake: Lake, load_id: str, keep: Iterable[str]) -> int:
    """Remove what losing attempts of a finished load left behind; how many files.

    That is whole data files, and the unfinished ones of writers that were killed. Only a load that
    is over may be cleaned. Cleaning is a courtesy: what cannot be removed now is left for the
    table's own vacuum, since no reader ever sees it.
    """
    kept = set(keep)
    # By name alone: names are unique, while one object may be listed under several spellings.
    names = {_name(path) for path in kept}
    removed = 0
    with suppress(CalqueError):
        for prefix, deep in _prefixes(lake, load_id, kept):
            removed += _remove(lake.place.operator, prefix, deep, load_id, names)
    return removed


def _remove(operator: Operator, prefix: str, deep: bool, load_id: str, kept: set[str]) -> int:
    removed = 0
    for found in operator.list(prefix, recursive=deep):
        if is_data_file_of(load_id, _name(found.path)) and _name(found.path) not in kept:
            operator.delete(found.path)
            removed += 1
    for left in operator.leftovers(prefix):
        if is_data_file_of(load_id, _name(left.location)):
            operator.remove_leftover(left)
    return removed


def _prefixes(lake: Lake, load_id: str, kept: set[str]) -> Iterator[tuple[str, bool]]:
    """Where the load's data files may be: in the data folder itself, and in partitions below it.

    A load that kept files is looked for where it kept them; one that was aborted may have written
    into any partition, so that those are looked at as a whole.
    """
    operator, base = lake.place.operator, lake.place.base
    folder = base + lake.data_prefix
    yield f"{folder}{load_id}-", False
    if kept:
        for partition in sorted({base + path[: path.rfind("/") + 1] for path in kept} - {folder}):
            yield f"{partition}{load_id}-", False
        return
    for entry in operator.list(folder, recursive=False):
        if entry.is_dir and "=" in entry.path[len(folder) :]:
            yield entry.path, True


def _name(path: str) -> str:
    return path.rpartition("/")[2]


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
