"""Our own commits in a table's log, whichever ledger their loads were run with.

Any number of ledgers may serve one table: each is a cache of what its log tells. Before anything is
compared, a ledger takes in what others have committed since it last looked; and before anything is
committed, what they have committed since then is held against the load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from calque.errors import NotFound, Unsupported
from calque.ledger import Ledger, TableRow
from calque.ledger.adopt import ADOPTED, adopt, find_known_loads
from calque.ledger.expire import note_forgotten
from calque.ledger.identity import micros
from calque.ledger.manifest import Manifest
from calque.loader.commit.sidecars import Sidecars
from calque.loader.commit.tables import Committed, Lake, Mark, Snapshot


@dataclass(frozen=True, slots=True)
class Listing:
    """What the sidecars of a table tell: its loads, oldest first, and those without an outcome."""

    commits: list[Committed]
    open: list[str]


def list_sidecars(lake: Lake, snapshot: Snapshot) -> Listing:
    """Every load that left a sidecar: committed if that was noted, or the table has its marker."""
    found = Listing([], [])
    for load_id, version in Sidecars(lake.place).loads():
        if version is None:
            version = _find_commit_version(snapshot, load_id)
        if version is None:
            found.open.append(load_id)
        else:
            found.commits.append(Committed(load_id, version))
    found.commits.sort(key=lambda one: (one.version, one.load_id))
    return found


def _find_commit_version(snapshot: Snapshot, load_id: str) -> int | None:
    try:
        marker = snapshot.marker(load_id, 0)
    except Unsupported:
        return None  # no marker, and the table's past is cut: not known to be committed
    if marker is None or marker.mark is not Mark.COMMITTED:
        return None
    return marker.version if marker.version is not None else snapshot.version


@dataclass(frozen=True, slots=True)
class Since:
    """Our commits above a version, by the log; by the sidecars where it no longer reaches back."""

    commits: list[Committed]
    by_log: bool
    """Else there may have been more, whose sidecars are gone as well."""


def commits_since(lake: Lake, snapshot: Snapshot, since: int) -> Since:
    """What was committed by us above a version, as far as that can be told."""
    told = snapshot.commits(since)
    if told is not None:
        return Since(told, by_log=True)
    listed = list_sidecars(lake, snapshot).commits
    return Since([one for one in listed if one.version > since], by_log=False)


def unknown_commits(
    ledger: Ledger, lake: Lake, table: TableRow, snapshot: Snapshot, since: int
) -> Since:
    """Those that the ledger has not taken in."""
    told = commits_since(lake, snapshot, since)
    known = find_known_loads(ledger, [name for one in told.commits for name in _names(one, table)])
    found = [
        one
        for one in told.commits
        if all(known.get(name, (None,))[0] != table.number for name in _names(one, table))
    ]
    return Since(found, told.by_log)


def _names(one: Committed, table: TableRow) -> tuple[str, str]:
    """How a ledger may call it: the id is another table's if two ledgers gave the same."""
    return one.load_id, f"{one.load_id}~t{table.number}"


def catch_up(
    ledger: Ledger, lake: Lake, table: TableRow, snapshot: Snapshot, since: int
) -> list[str]:
    """Take in what was committed above a version with other ledgers; the ids of those loads.

    Their sources are purged by the ledgers that know of it.
    """
    found = unknown_commits(ledger, lake, table, snapshot, since)
    if not found.by_log:
        learn_forgotten(ledger, lake, table)
    if not found.commits:
        return []
    restored = snapshot.find_restores(since)
    return take_in(ledger, lake, table, snapshot, found.commits, restored, purge=False)


def learn_forgotten(ledger: Ledger, lake: Lake, table: TableRow) -> None:
    """Take in what the table tells of loads whose sidecars are gone: how young their files were."""
    until = Sidecars(lake.place).forgotten_until(table.key.table_id, ledger.tenant)
    if until is not None:
        note_forgotten(ledger, table, until)


def take_in(
    ledger: Ledger,
    lake: Lake,
    table: TableRow,
    snapshot: Snapshot,
    commits: Sequence[Committed],
    restored: Sequence[tuple[int, int]],
    *,
    purge: bool,
    look_only: bool = False,
) -> list[str]:
    """Record committed loads as their sidecars tell them, but none that a restore took back."""
    kept = set(snapshot.markers())
    sidecars = Sidecars(lake.place)
    adopted = []
    is_missing = False
    for one in commits:
        try:
            listed = sidecars.read(one.load_id, table.key.table_id, ledger.tenant)
        except NotFound:  # its time was over, and it was removed
            is_missing = True
            continue
        if listed is None or any(low < one.version <= high for low, high in restored):
            continue
        if one.load_id in kept and not look_only:
            # Its marker may go once it is recorded here, and its own loader may not have noted it.
            sidecars.finish(one.load_id, one.version)
        manifest = listed if purge else replace(listed, purge=False)
        if adopt(ledger, table, one.load_id, one.version, manifest):
            adopted.append(one.load_id)
    if is_missing:
        learn_forgotten(ledger, lake, table)
    return adopted


def find_rival(
    ledger: Ledger,
    lake: Lake,
    table: TableRow,
    snapshot: Snapshot,
    since: int,
    manifest: Manifest,
) -> str | None:
    """A load of another ledger above a version with which this one cannot be committed as well.

    Loads of the same ledger have shared out their files by claims. What a load brought whose
    sidecar is gone nobody can tell: it may have been one of these files.
    """
    told = commits_since(lake, snapshot, since)
    if not told.by_log and _may_be_forgotten(ledger, lake, table, manifest):
        return "that is forgotten by now"
    known = find_known_loads(ledger, [one.load_id for one in told.commits])
    others = [one for one in told.commits if not _is_own(known.get(one.load_id), table)]
    for one in others:
        try:
            listed = Sidecars(lake.place).read(one.load_id, table.key.table_id, ledger.tenant)
        except NotFound:
            if manifest.sources and not manifest.forced:
                return one.load_id
            continue
        if listed is not None and _collide(manifest, listed):
            return one.load_id
    return None


def _may_be_forgotten(ledger: Ledger, lake: Lake, table: TableRow, manifest: Manifest) -> bool:
    """Whether a file of the load is as old as those of which nobody can tell any more."""
    if manifest.forced:
        return False
    until = Sidecars(lake.place).forgotten_until(table.key.table_id, ledger.tenant)
    stamps = [micros(one.identity.last_modified) for one in manifest.sources]
    return until is not None and any(one is not None and one <= until for one in stamps)


def _is_own(known: tuple[int, str] | None, table: TableRow) -> bool:
    return known is not None and known[0] == table.number and known[1] != ADOPTED


def _collide(mine: Manifest, other: Manifest) -> bool:
    if mine.label is not None and mine.label == other.label:
        return True
    if any("remove" in action for action in mine.actions) and (other.moved or other.truncate):
        return True  # the rows to be replaced may stand elsewhere now, or nowhere
    if mine.forced:
        return False
    places = {one.identity.location for one in mine.sources}
    return any(one.identity.location in places for one in other.sources)
