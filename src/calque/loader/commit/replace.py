"""``on_changed = replace``: the rows of a file's earlier load go in the commit that brings the new.

Which rows those are is known by number: every record names the data files and row ranges that its
source filled. A table that was compacted by another tool has lost those numbers; then a file cannot
be replaced and is reported so, before anything is read.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from calque.ledger import Known, Ledger, TableRow
from calque.ledger.files import parts_of, parts_of_load
from calque.loader.commit.remove_rows import Part, cut, shift
from calque.loader.commit.tables import Lake, Snapshot
from calque.loader.model.data_file import DataFile


@dataclass(slots=True)
class Replacement:
    """What has to leave the table: row ranges by data file."""

    gone: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    partitions: dict[str, dict[str, str | None]] = field(default_factory=dict)
    loads: set[str] = field(default_factory=set)
    lost: dict[str, str] = field(default_factory=dict)
    """Sources whose earlier rows cannot be found, with the reason."""


def find_earlier_rows(
    ledger: Ledger, table: TableRow, snapshot: Snapshot, known: Iterable[Known]
) -> Replacement:
    """Where the rows of these files' earlier loads stand."""
    records = {one.location: one for one in known}
    found = Replacement()
    if not records:
        return found
    parts = {place: _parts(text) for place, text in parts_of(ledger, table, list(records)).items()}
    live = snapshot.live(path for some in parts.values() for path, _, _ in some)
    for place, some in parts.items():
        if any(path not in live for path, _, _ in some):
            found.lost[place] = (
                "the rows of its earlier load cannot be found: another tool has rewritten the "
                "table's data files; use on_changed=reload or skip"
            )
            continue
        found.loads.add(records[place].load_id)
        for path, first, rows in some:
            found.gone.setdefault(path, []).append((first, rows))
            found.partitions[path] = live[path]
    return found


def replace_actions(
    ledger: Ledger, table: TableRow, lake: Lake, snapshot: Snapshot, load_id: str, old: Replacement
) -> tuple[list[dict[str, Any]], dict[str, tuple[Part, ...]]]:
    """The removals (and rewritten files) to commit, and where other sources' rows stand then."""
    neighbours = _neighbours(ledger, table, old)
    actions: list[dict[str, Any]] = []
    renamed: dict[str, str] = {}
    for number, (path, gone) in enumerate(sorted(old.gone.items())):
        actions.append({"remove": path})
        if not any(path == part[0] for parts in neighbours.values() for part in parts):
            continue
        folder = path.rpartition("/")[0]
        new_path = f"{folder}/" if folder else ""
        new_path += f"{load_id}-kept-{number:05d}.parquet"
        shell = DataFile(path, 0, 0, partition=old.partitions[path])
        rewritten = cut(lake.place, shell, gone, new_path)
        renamed[path] = new_path
        actions.append(lake.encode(rewritten, snapshot.target))
    moved = {
        place: tuple(_move_part(part, old, renamed) for part in parts)
        for place, parts in neighbours.items()
    }
    return actions, moved


def _neighbours(ledger: Ledger, table: TableRow, old: Replacement) -> dict[str, list[Part]]:
    """Other sources of the same loads with rows in the files that are rewritten."""
    found: dict[str, list[Part]] = defaultdict(list)
    for load_id in old.loads:
        for place, text in parts_of_load(ledger, table, load_id).items():
            parts = _parts(text)
            touched = [part for part in parts if part[0] in old.gone]
            if touched and not all(_is_gone(part, old) for part in touched):
                found[place] = parts
    return dict(found)


def _is_gone(part: Part, old: Replacement) -> bool:
    path, first, rows = part
    return (first, rows) in old.gone.get(path, ())


def _move_part(part: Part, old: Replacement, renamed: dict[str, str]) -> Part:
    path, first, rows = part
    if path not in renamed:
        return part
    return renamed[path], shift(first, old.gone[path]), rows


def _parts(text: str | None) -> list[Part]:
    return [(path, first, rows) for path, first, rows in json.loads(text)] if text else []


def drop_sources(
    lake: Lake, load_id: str, files: Sequence[DataFile], places: set[str]
) -> list[DataFile]:
    """A load's own data files without the rows of sources that changed while they were read."""
    kept = []
    for number, file in enumerate(files):
        gone = [(one.first_row, one.rows) for one in file.spans if one.location in places]
        if not gone:
            kept.append(file)
        elif sum(rows for _, rows in gone) < file.rows:
            folder = file.path.rpartition("/")[0]
            new_path = f"{folder}/" if folder else ""
            new_path += f"{load_id}-cut-{number:05d}.parquet"
            kept.append(cut(lake.place, file, gone, new_path))
    return kept
