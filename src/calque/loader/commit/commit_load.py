"""What becomes of a load is settled in the table: its marker is committed there, once.

Committing and aborting are the same act with another marker, a compare-and-set on the version that
was just read. So owner and recoverers may race: the first marker in the log wins, and all the
others find it and bring ledger, sidecar and data files into line with it.
"""

from __future__ import annotations

import time
from contextlib import suppress

from calque import faults
from calque.errors import (
    Aborted,
    CalqueError,
    ConditionNotMatch,
    NotFound,
    Unavailable,
    Unsupported,
)
from calque.ledger import Ledger, TableRow
from calque.ledger.abort import abort as abort_in_ledger
from calque.ledger.finalise import finalise
from calque.ledger.history import find_load
from calque.ledger.lease import OpenLoad
from calque.ledger.manifest import Manifest
from calque.ledger.schema import OPEN
from calque.loader.commit.orphans import remove_orphans
from calque.loader.commit.our_commits import find_rival
from calque.loader.commit.sidecars import Sidecars
from calque.loader.commit.tables import Change, Lake, Mark, Marker, Snapshot
from calque.values import Backoff

PATIENCE = 300.0
"""Seconds to keep on trying against a table that others commit to all the time."""
_COMMIT_BACKOFF = Backoff(first=0.01, most=2.0, jitter=1.0)


class Overtaken(Aborted):
    """Others were quicker, or took the load for dead: it is aborted, and can be planned anew."""


class TableGone(Aborted):
    """The table of a load is another one by now: nothing of the load can be committed."""


def commit_load(
    ledger: Ledger,
    lake: Lake,
    table: TableRow,
    load_id: str,
    base_version: int,
    manifest: Manifest,
    patience: float = PATIENCE,
) -> int:
    """Steps 4 and 5 of a prepared load, by its owner or by a recoverer.

    Raises Overtaken when another aborted it, or loaded some of its files with another ledger. A
    data file may hold rows of several sources, so that nothing can be left out of it any more.
    """
    change = Change(
        load_id=load_id,
        mark=Mark.COMMITTED,
        actions=manifest.actions,
        truncate=manifest.truncate,
        sidecar=Sidecars(lake.place).path(load_id),
    )
    reason = "aborted by another loader, which took it for dead"
    try:
        mark, version = _settle(ledger, lake, table, base_version, change, patience, manifest)
    except Overtaken as error:
        reason = error.message
        given_up = Change(load_id=load_id, mark=Mark.ABORTED)
        mark, version = _settle(ledger, lake, table, base_version, given_up, patience)
    if mark is Mark.ABORTED:
        release_load(ledger, lake, load_id, reason)
        raise Overtaken(
            f"load {load_id}: {reason}",
            hint="Nothing was loaded by this run; run the statement again.",
            retryable=True,
        )
    _finish(ledger, lake, load_id, version, manifest)
    return version


def abort_load(
    ledger: Ledger,
    lake: Lake,
    table: TableRow,
    load: OpenLoad,
    manifest: Manifest | None,
    message: str,
    patience: float = PATIENCE,
) -> tuple[Mark, int]:
    """Abort a load that others might still commit: by a marker. It may turn out committed."""
    change = Change(load_id=load.load_id, mark=Mark.ABORTED)
    mark, version = _settle(ledger, lake, table, load.base_version, change, patience)
    if mark is Mark.ABORTED:
        release_load(ledger, lake, load.load_id, message)
    elif manifest is not None:
        _finish(ledger, lake, load.load_id, version, manifest)
    else:
        finalise(ledger, load.load_id, version)
    return mark, version


def fence(ledger: Ledger, lake: Lake, table: TableRow, load_id: str, seen: int) -> tuple[Mark, int]:
    """Let a load of which the ledger knows nothing be committed no more, unless it was already.

    ``seen`` is the table's version at which it had no marker.
    """
    change = Change(load_id=load_id, mark=Mark.ABORTED)
    mark, version = _settle(ledger, lake, table, seen, change, PATIENCE)
    if mark is Mark.COMMITTED:
        # Its marker may go once it is recorded here, and its own loader may not have noted it.
        Sidecars(lake.place).finish(load_id, version)
        return mark, version
    with suppress(CalqueError):
        Sidecars(lake.place).remove(load_id)
    remove_orphans(lake, load_id, keep=())
    return mark, version


def _settle(
    ledger: Ledger,
    lake: Lake,
    table: TableRow,
    base_version: int,
    change: Change,
    patience: float,
    manifest: Manifest | None = None,
) -> tuple[Mark, int]:
    """Commit the change unless the load has a marker already; what the table says in the end.

    With a manifest, what was committed since the claim is held against it: Overtaken if both
    cannot be. The commit holds only on the version that was looked at, so nothing slips between.
    """
    until = time.monotonic() + patience
    waits = _COMMIT_BACKOFF.waits()
    looked = base_version
    while True:
        snapshot = open_same_table(lake, table)
        found = find_marker(ledger, lake, snapshot, change.load_id, base_version)
        if found is not None:
            return found.mark, _version_of(lake, change.load_id, found.version, snapshot)
        if manifest is not None:
            _refuse_rival(ledger, lake, table, snapshot, looked, manifest)
            looked = snapshot.version
        faults.point("commit.before")
        try:
            version = snapshot.commit(_add_dropped_markers(ledger, table, snapshot, change))
            faults.point("commit.after")
            return change.mark, version
        except ConditionNotMatch:
            if time.monotonic() > until:
                raise
        except Unavailable:
            # The outcome is unknown; the next fresh look tells. Only a silent table ends this.
            if time.monotonic() > until:
                raise
        time.sleep(next(waits))


def _refuse_rival(
    ledger: Ledger,
    lake: Lake,
    table: TableRow,
    snapshot: Snapshot,
    since: int,
    manifest: Manifest,
) -> None:
    rival = find_rival(ledger, lake, table, snapshot, since, manifest)
    if rival is not None:
        raise Overtaken(
            f"load {rival}, run with another ledger, was quicker with some of its files"
        )


def find_marker(
    ledger: Ledger, lake: Lake, snapshot: Snapshot, load_id: str, base_version: int
) -> Marker | None:
    """The load's marker; where the table's past is cut, what sidecar and ledger tell of it.

    A marker that is kept beside the log is dropped only once its load is over in the ledger. So a
    load that is open there, asked after the snapshot was read, was not committed before it.
    """
    try:
        return snapshot.marker(load_id, base_version)
    except Unsupported:
        noted = dict(Sidecars(lake.place).loads()).get(load_id)
        if noted is not None:
            return Marker(Mark.COMMITTED, noted)
        if find_load(ledger, load_id).state in OPEN:
            return None
        raise


def _version_of(lake: Lake, load_id: str, version: int | None, snapshot: Snapshot) -> int:
    """The version of a commit whose place in the log is no longer known: at most the present."""
    if version is not None:
        return version
    noted = dict(Sidecars(lake.place).loads()).get(load_id)
    return noted if noted is not None else snapshot.version


def _add_dropped_markers(
    ledger: Ledger, table: TableRow, snapshot: Snapshot, change: Change
) -> Change:
    """Let the commit also drop markers of loads that are finalised.

    Of this table: by a label another ledger may have given the same id to a load of another one.
    """
    drops = []
    for load_id in snapshot.markers():
        with suppress(NotFound):
            found = find_load(ledger, load_id)
            if found.table_number == table.number and found.state == "COMMITTED":
                drops.append(load_id)
    if not drops:
        return change
    return Change(
        load_id=change.load_id,
        mark=change.mark,
        actions=change.actions,
        truncate=change.truncate,
        sidecar=change.sidecar,
        drop_markers=tuple(drops),
    )


def open_same_table(lake: Lake, table: TableRow) -> Snapshot:
    """The table fresh; Aborted if it is another one under the same name by now."""
    snapshot = lake.open()
    if snapshot.table_id != table.key.table_id:
        raise TableGone(
            f"table {lake.display} was dropped and made again meanwhile",
            hint="Nothing was loaded by this run; run the statement again.",
            retryable=True,
        )
    return snapshot


def _finish(ledger: Ledger, lake: Lake, load_id: str, version: int, manifest: Manifest) -> None:
    faults.point("finalise.before")
    # Noted first: once the load is over in the ledger its marker may go, and if nobody came back to
    # write the note, a ledger that is lost then could not be rebuilt.
    Sidecars(lake.place).finish(load_id, version)
    finalise(ledger, load_id, version, manifest)
    faults.point("finalise.after")
    # The manifest is the caller's: the ledger's own copy is gone by now, and cleaning with an
    # empty list of what to keep would remove what was just committed.
    kept = [action["add"] for action in manifest.actions if "add" in action]
    remove_orphans(lake, load_id, keep=kept)


def release_load(ledger: Ledger, lake: Lake, load_id: str, message: str) -> None:
    """Let go of a load that has an abort marker: no file of it can ever be committed."""
    abort_in_ledger(ledger, load_id, message, Manifest())
    with suppress(CalqueError):
        Sidecars(lake.place).remove(load_id)
    remove_orphans(lake, load_id, keep=())
