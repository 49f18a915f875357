"""The protocol of a load: claim, write, prepare, commit, finalise, purge.

The table's own log is the arbiter, the ledger a cache of it.

1. **Claim**: one ledger transaction opens the load (WRITING, with a lease) and takes its files.
2. **Write**: an engine writes data files under the table's root; they mean nothing yet.
3. **Prepare**: sources are checked against the claim, the sidecar is written, the manifest stored
   in the ledger (PREPARED). From here anyone can finish the load.
   A table that is not there yet is made now, and not before: a load that fails leaves none.
4. **Commit** (``commit_load``): open the table fresh. Our marker is there? Then it is done. Has a
   load of another ledger brought one of our files since the claim? Then this one is aborted, and
   what is left is planned anew. Else one commit with the data files and the marker, as a
   compare-and-set on the version just read. Conflict: again.
5. **Finalise**: one ledger transaction, files LOADED, load COMMITTED.
6. **Purge** of sources (removed, or moved to an archive), from a queue in the ledger.

Whoever meets a load whose owner is dead recovers it (``recovery``): a marker says what happened;
without one a PREPARED load is rolled forward and a WRITING one aborted. Abort is itself a marker
commit without files, so that a straggler finds it in step 4 and loses for ever. Leases only tell
when to look.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from calque import faults
from calque.errors import Aborted, CalqueError, NotFound
from calque.ledger import Ledger, TableRow
from calque.ledger.abort import abort as abort_in_ledger
from calque.ledger.claim import Claimed, LoadStart, Wanted, outlast_claims
from calque.ledger.claim import claim as claim_files
from calque.ledger.lease import OpenLoad, open_loads, renew_lease
from calque.ledger.manifest import Manifest
from calque.ledger.prepare import manifest_of
from calque.ledger.prepare import prepare as prepare_in_ledger
from calque.loader.commit.commit_load import (
    PATIENCE,
    TableGone,
    abort_load,
    commit_load,
    release_load,
)
from calque.loader.commit.orphans import remove_orphans
from calque.loader.commit.sidecars import Sidecars
from calque.loader.commit.tables import Lake, Mark

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

STOPPED = "stopped before its end"
"""What the history says of a load that Ctrl-C ended."""

PATIENCE_OF_STOPPED = 10.0
"""Seconds for a table that is away: who stops a load does not wait for minutes."""


class LoadRun:
    """One load from its claim to its end; ``makes_table``: its table is made on the way."""

    def __init__(
        self,
        ledger: Ledger,
        lake: Lake,
        table: TableRow,
        start: LoadStart,
        *,
        makes_table: bool = False,
    ) -> None:
        self.ledger = ledger
        self.lake = lake
        self.table = table
        self.start = start
        self.load_id = start.load_id
        self.makes_table = makes_table
        self._stop = threading.Event()
        self._patience = PATIENCE
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
            return commit_load(
                self.ledger,
                self.lake,
                self.table,
                self.load_id,
                self.start.base_version,
                manifest,
                self._patience,
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
            mark, version = abort_load(
                self.ledger, self.lake, self.table, load, manifest, error.message, self._patience
            )
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

    @contextmanager
    def released_if_stopped(self) -> Iterator[None]:
        """Hold nothing after Ctrl-C, wherever it struck; it goes on once the load is at its end.

        It may strike between any two lines, so the ledger is asked how far the load came, not us.
        What is in the table is recorded, the rest let go; but where the load had made the table it
        is committed, for an empty one would be left. A second Ctrl-C ends this too, and so does a
        table that is away for longer; then whoever comes next recovers the load.
        """
        try:
            yield
        except (KeyboardInterrupt, SystemExit):
            with suppress(CalqueError):
                self._release()
            raise

    def _release(self) -> None:
        self._patience = PATIENCE_OF_STOPPED
        outlast_claims(self.ledger, self.table)
        for load in open_loads(self.ledger, self.table):
            if (load.load_id, load.owner) != (self.load_id, self.start.owner):
                continue
            if load.state == "WRITING":
                self.withdraw(STOPPED)
                continue
            try:
                self._settle(load)
            except TableGone:
                self.withdraw(STOPPED)
            except NotFound:
                if not self.makes_table:
                    raise  # a table that is away may come back, with the load in it
                self.withdraw(STOPPED)

    def _settle(self, load: OpenLoad) -> None:
        """Bring a load that is PREPARED to its end at once."""
        manifest = manifest_of(self.ledger, self.load_id)
        if self.makes_table and manifest is not None:
            self.commit(manifest)
        else:
            abort_load(self.ledger, self.lake, self.table, load, manifest, STOPPED, self._patience)

    def withdraw(self, message: str) -> None:
        """Release a load that nobody can commit: never PREPARED, or without a table."""
        release_load(self.ledger, self.lake, self.load_id, message)

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
