"""The protocol of a load: claim, write, prepare, commit, finalise, purge; and recovery.

The table's own log is the arbiter, the ledger a cache of it.

1. **Claim**: one ledger transaction opens the load (WRITING, with a lease) and takes its files.
2. **Write**: an engine writes data files under the table's root; they mean nothing yet.
3. **Prepare**: sources are checked against the claim, the sidecar is written, the manifest stored
   in the ledger (PREPARED). From here anyone can finish the load.
   A table that is not there yet is made now, and not before: a load that fails leaves none.
4. **Commit**: open the table fresh. Our marker is there? Then it is done. Has a load of another
   ledger brought one of our files since the claim? Then this one is aborted, and what is left is
   planned anew. Else one commit with the data files and the marker, as a compare-and-set on the
   version just read. Conflict: again.
5. **Finalise**: one ledger transaction, files LOADED, load COMMITTED.
6. **Purge** of sources (removed, or moved to an archive), from a queue in the ledger.

Whoever meets a load whose owner is dead recovers it: a marker says what happened; without one a
PREPARED load is rolled forward and a WRITING one aborted. Abort is itself a marker commit without
files, so that a straggler finds it in step 4 and loses for ever. Leases only tell when to look.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from calque import faults
from calque.errors import (
    Aborted,
    CalqueError,
    ConditionNotMatch,
    DataError,
    NotFound,
    Unavailable,
    Unsupported,
)
from calque.ledger import Ledger, TableRow
from calque.ledger.abort import abort as abort_in_ledger
from calque.ledger.claim import Claimed, LoadStart, Wanted
from calque.ledger.claim import claim as claim_files
from calque.ledger.finalise import finalise
from calque.ledger.history import find_load
from calque.ledger.lease import OpenLoad, dead_loads, renew_lease, take_over
from calque.ledger.manifest import Manifest
from calque.ledger.prepare import manifest_of
from calque.ledger.prepare import prepare as prepare_in_ledger
from calque.ledger.schema import OPEN
from calque.ledger.tables import namesakes
from calque.loader.after.orphans import data_files_exist, remove_orphans
from calque.loader.commit.our_commits import find_rival
from calque.loader.commit.sidecars import Sidecars
from calque.loader.commit.tables import Change, Lake, Mark, Marker, Snapshot

STEPS = (
    "claim.before",
    "claim.after",
    "write.before",
    "write.after",
    "prepare.before",
    "prepare.sidecar",
    "prepare.after",
    "table.before",
    "table.after",
    "commit.before",
    "commit.after",
    "finalise.before",
    "finalise.after",
    "purge.before",
    "purge.after",
)
"""Every fault point of a load, in order."""

PATIENCE = 300.0
"""Seconds to keep on trying against a table that others commit to all the time."""


class Overtaken(Aborted):
    """Others were quicker, or took the load for dead: it is aborted, and can be planned anew."""


class TableGone(Aborted):
    """The table of a load is another one by now: nothing of the load can be committed."""


@dataclass(frozen=True, slots=True)
class Recovered:
    """What recovery did with a dead load."""

    load_id: str
    mark: Mark


class LoadRun:
    """One load from its claim to its end."""

    def __init__(self, ledger: Ledger, lake: Lake, table: TableRow, start: LoadStart) -> None:
        self.ledger = ledger
        self.lake = lake
        self.table = table
        self.start = start
        self.load_id = start.load_id
        self._stop = threading.Event()
        self._writing = False

    def claim(self, wanted: Sequence[Wanted]) -> Claimed:
        """Step 1."""
        faults.point("claim.before")
        claimed = claim_files(self.ledger, self.table, self.start, wanted)
        self._writing = True
        faults.point("claim.after")
        return claimed

    def prepare(self, manifest: Manifest) -> None:
        """Step 3, after the caller has checked the sources: sidecar, then PREPARED."""
        Sidecars(self.lake.place).write(
            self.load_id, self.table.key.table_id, self.ledger.tenant, manifest
        )
        faults.point("prepare.sidecar")
        self._writing = False
        try:
            prepare_in_ledger(self.ledger, self.load_id, self.start.owner, manifest)
        except Aborted:
            # Taken over while WRITING, so it never was PREPARED and nobody can commit it.
            with suppress(CalqueError):
                Sidecars(self.lake.place).remove(self.load_id)
            remove_orphans(self.lake, self.load_id, keep=())
            raise
        faults.point("prepare.after")

    def commit(self, manifest: Manifest) -> int:
        """Steps 4 and 5; the table's version. Raises Overtaken where others made it impossible.

        An error that leaves the outcome open ends in an abort by marker, so that nothing is left
        half-way; it is no error if the table then says that the load was committed. If even that
        fails, whoever comes next recovers the load.
        """
        try:
            return commit(
                self.ledger, self.lake, self.table, self.load_id, self.start.base_version, manifest
            )
        except TableGone as error:
            # No table of its id will ever be there again: nobody can commit it.
            self.withdraw(error.message)
            raise
        except Aborted:
            raise
        except CalqueError as error:
            load = OpenLoad(
                self.load_id,
                "PREPARED",
                self.start.owner,
                0,
                self.start.base_version,
                self.table.number,
            )
            mark, version = abort(self.ledger, self.lake, self.table, load, manifest, error.message)
            if mark is Mark.COMMITTED:
                return version
            raise

    def give_up(self, message: str, manifest: Manifest) -> None:
        """Release the files of a load that is still being written, by us alone.

        No marker is needed: a load that never was PREPARED is never rolled forward by anyone, and
        this process goes on no further with it. Does nothing once it is PREPARED.
        """
        if not self._writing:
            return
        self._writing = False
        abort_in_ledger(self.ledger, self.load_id, message, manifest)
        remove_orphans(self.lake, self.load_id, keep=())

    def withdraw(self, message: str) -> None:
        """Release a load whose table was never made, or is gone: no marker can be written."""
        _release(self.ledger, self.lake, self.load_id, message)

    @contextmanager
    def lease(self) -> Iterator[None]:
        """Keep the lease while the work lasts, by a thread of its own."""
        keeper = threading.Thread(target=self._keep, name="calque-lease", daemon=True)
        keeper.start()
        try:
            yield
        finally:
            self._stop.set()
            keeper.join(timeout=5)

    def _keep(self) -> None:
        pause = self.start.lease_seconds / 4
        while not self._stop.wait(pause):
            # A ledger that fails is no reason to stop: the lease may be renewed next time.
            with suppress(CalqueError):
                if not renew_lease(
                    self.ledger, self.load_id, self.start.owner, self.start.lease_seconds
                ):
                    return


def commit(
    ledger: Ledger,
    lake: Lake,
    table: TableRow,
    load_id: str,
    base_version: int,
    manifest: Manifest,
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
        mark, version = _settle(ledger, lake, table, base_version, change, manifest)
    except Overtaken as error:
        reason = error.message
        given_up = Change(load_id=load_id, mark=Mark.ABORTED)
        mark, version = _settle(ledger, lake, table, base_version, given_up)
    if mark is Mark.ABORTED:
        _release(ledger, lake, load_id, reason)
        raise Overtaken(
            f"load {load_id}: {reason}",
            hint="Nothing was loaded by this run; run the statement again.",
            retryable=True,
        )
    _finish(ledger, lake, load_id, version, manifest)
    return version


def abort(
    ledger: Ledger,
    lake: Lake,
    table: TableRow,
    load: OpenLoad,
    manifest: Manifest | None,
    message: str,
) -> tuple[Mark, int]:
    """Abort a load that others might still commit: by a marker. It may turn out committed."""
    change = Change(load_id=load.load_id, mark=Mark.ABORTED)
    mark, version = _settle(ledger, lake, table, load.base_version, change)
    if mark is Mark.ABORTED:
        _release(ledger, lake, load.load_id, message)
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
    mark, version = _settle(ledger, lake, table, seen, change)
    if mark is Mark.ABORTED:
        with suppress(CalqueError):
            Sidecars(lake.place).remove(load_id)
        remove_orphans(lake, load_id, keep=())
    return mark, version


def recover(
    ledger: Ledger, lake: Lake, table: TableRow, owner: str, lease_seconds: float
) -> list[Recovered]:
    """Bring every dead load of the table to its end. Safe for any number of recoverers at once."""
    recovered = []
    for load in dead_loads(ledger, table):
        taken = take_over(ledger, load, owner, lease_seconds)
        if taken is not None:
            recovered.append(Recovered(load.load_id, _recover(ledger, lake, table, taken)))
    return recovered


def _recover(ledger: Ledger, lake: Lake, table: TableRow, load: OpenLoad) -> Mark:
    manifest = manifest_of(ledger, load.load_id)
    if manifest is None or load.state == "WRITING":
        return abort(ledger, lake, table, load, manifest, "its loader died while writing")[0]
    marker = _marker(ledger, lake, _open(lake, table), load.load_id, load.base_version)
    if marker is None and not data_files_exist(lake, manifest):
        return abort(ledger, lake, table, load, manifest, "its data files were cleaned away")[0]
    try:
        commit(ledger, lake, table, load.load_id, load.base_version, manifest)
    except Aborted:
        return Mark.ABORTED
    except (DataError, Unsupported) as error:
        # The rows it replaces were moved, or must stay by now: it would fail for ever, and all
        # loads of the table with it.
        return abort(ledger, lake, table, load, manifest, error.message)[0]
    return Mark.COMMITTED


def release_lost(ledger: Ledger, lake: Lake, table: TableRow) -> list[str]:
    """Release dead loads of tables that had this one's name and were never made, or dropped.

    This table has their place, so none of them can be committed any more.
    """
    released = []
    for other in namesakes(ledger, table):
        for load in dead_loads(ledger, other):
            _release(ledger, lake, load.load_id, "its table was never made, or is another by now")
            released.append(load.load_id)
    return released


def _settle(
    ledger: Ledger,
    lake: Lake,
    table: TableRow,
    base_version: int,
    change: Change,
    manifest: Manifest | None = None,
) -> tuple[Mark, int]:
    """Commit the change unless the load has a marker already; what the table says in the end.

    With a manifest, what was committed since the claim is held against it: Overtaken if both
    cannot be. The commit holds only on the version that was looked at, so nothing slips between.
    """
    until = time.monotonic() + PATIENCE
    wait = 0.01
    looked = base_version
    while True:
        snapshot = _open(lake, table)
        found = _marker(ledger, lake, snapshot, change.load_id, base_version)
        if found is not None:
            return found.mark, _version(lake, change.load_id, found.version, snapshot)
        if manifest is not None:
            _refuse_rival(ledger, lake, table, snapshot, looked, manifest)
            looked = snapshot.version
        faults.point("commit.before")
        try:
            version = snapshot.commit(_with_drops(ledger, snapshot, change))
            faults.point("commit.after")
            return change.mark, version
        except ConditionNotMatch:
            if time.monotonic() > until:
                raise
        except Unavailable:
            # The outcome is unknown; the next fresh look tells. Only a silent table ends this.
            if time.monotonic() > until:
                raise
        time.sleep(wait * random.random())
        wait = min(wait * 2, 2.0)


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


def _marker(
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


def _version(lake: Lake, load_id: str, version: int | None, snapshot: Snapshot) -> int:
    """The version of a commit whose place in the log is no longer known: at most the present."""
    if version is not None:
        return version
    noted = dict(Sidecars(lake.place).loads()).get(load_id)
    return noted if noted is not None else snapshot.version


def _with_drops(ledger: Ledger, snapshot: Snapshot, change: Change) -> Change:
    """Let the commit also drop markers of loads that are finalised."""
    drops = []
    for load_id in snapshot.markers():
        with suppress(NotFound):
            if find_load(ledger, load_id).state == "COMMITTED":
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


def _open(lake: Lake, table: TableRow) -> Snapshot:
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


def _release(ledger: Ledger, lake: Lake, load_id: str, message: str) -> None:
    """Let go of a load that has an abort marker: no file of it can ever be committed."""
    abort_in_ledger(ledger, load_id, message, Manifest())
    with suppress(CalqueError):
        Sidecars(lake.place).remove(load_id)
    remove_orphans(lake, load_id, keep=())
