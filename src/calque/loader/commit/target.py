"""The table of a request: found, registered in the ledger, and brought into line with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from calque import faults
from calque.errors import NotFound, StatementInvalid
from calque.ledger import Ledger, TableRow
from calque.ledger.tables import find_table, note_restore, register_table, void_records
from calque.loader.commit.commit_load import TableGone
from calque.loader.commit.our_commits import catch_up
from calque.loader.commit.rebuild import rebuild
from calque.loader.commit.recovery import recover, release_lost
from calque.loader.commit.tables import Draft, Lake, Mark, Snapshot


class Target:
    """A table and the ledger that serves it in this run; ``draft`` while it is still to be made."""

    def __init__(self, lake: Lake, ledger: Ledger, note: Callable[[str], None]) -> None:
        self.lake = lake
        self.ledger = ledger
        self._note = note
        self.draft: Draft | None = None
        self.taken_in = 0
        """Loads of other ledgers that this run has taken in from the table's log."""
        self._known_until = -1

    def open(self, *, may_be_made: bool, partition_by: tuple[str, ...] = ()) -> Snapshot | None:
        """The table as it is now; None where it is not there and may be made."""
        try:
            found = self.lake.open()
        except NotFound:
            if not may_be_made:
                raise
            return None
        _check_partitions(self.lake, found, partition_by)
        return found

    def has_place(self, snapshot: Snapshot | None) -> bool:
        """Whether it is known where the table lies: a catalog says so once it is made."""
        return snapshot is not None or self.lake.kind == "delta"

    def read_data_file(self, path: str) -> Iterator[bytes]:
        """The bytes of a data file; NotFound where it was cleaned up."""
        place = self.lake.place
        return place.operator.read_stream(place.full(path))

    def is_made_by_others(self) -> bool:
        """Whether a table that this run was to make is there by now, and is not ours."""
        if self.draft is None:
            return False
        try:
            return self.lake.open().table_id != self.draft.snapshot.table_id
        except NotFound:
            return False

    def open_first(self, *, partition_by: tuple[str, ...] = ()) -> Snapshot | None:
        """The table that the first load of a draft made; None if it made none."""
        found = self.open(may_be_made=True, partition_by=partition_by)
        ours = self.draft.snapshot.table_id if self.draft is not None else None
        if found is not None and found.table_id != ours:
            # The draft stays: it is by its id that the run learns whose table this is.
            raise TableGone(f"table {self.lake.display} was made by another loader meanwhile")
        self.draft = None
        return found

    def find(self, snapshot: Snapshot) -> TableRow | None:
        """What the ledger knows of the table; writes nothing."""
        return find_table(self.ledger, self.lake.key(snapshot))

    def register(self, snapshot: Snapshot) -> TableRow:
        """Its row in the ledger, once all loads up to this version are known to that.

        The table is the arbiter: what other ledgers loaded counts, what a restore took back does
        not. So this comes before every comparison, and again before every claim.
        """
        key = self.lake.key(snapshot)
        table = register_table(self.ledger, key)
        if self.draft is not None and self.draft.snapshot is snapshot:
            void_records(self.ledger, table, [], snapshot.version)  # there is nothing to compare
            return register_table(self.ledger, key)
        ranges = [] if table.is_unchecked else snapshot.find_restores(table.checked_version)
        if ranges and note_restore(self.ledger, table, ranges):
            self._note(
                "the table was restored to an earlier version: files that it lost count as new"
            )
            table = register_table(self.ledger, key)
        if table.was_restored or (table.is_unchecked and self._known_until < 0):
            faults.point("rebuild.before")
            adopted = rebuild(self.ledger, self.lake, table, snapshot)
            if adopted:
                self._note(
                    "the ledger did not know this table; earlier loads were taken over from the "
                    f"table itself: {len(adopted)}"
                )
        else:
            since = max(table.checked_version, self._known_until)
            self.taken_in += len(catch_up(self.ledger, self.lake, table, snapshot, since))
            void_records(self.ledger, table, [], snapshot.version)
        self._known_until = snapshot.version
        return register_table(self.ledger, key)

    def recover(self, table: TableRow, owner: str, lease_seconds: float) -> list[str]:
        """Bring loads of dead processes to their end; each with its outcome."""
        done = recover(self.ledger, self.lake, table, owner, lease_seconds)
        return [f"{one.load_id}: {one.mark}" for one in done] + self.release_lost(table)

    def release_lost(self, table: TableRow) -> list[str]:
        """Release dead loads of tables that had this one's name; each with its outcome."""
        lost = release_lost(self.ledger, self.lake, table)
        return [f"{load_id}: {Mark.ABORTED}" for load_id in lost]


def _check_partitions(lake: Lake, snapshot: Snapshot, wanted: tuple[str, ...]) -> None:
    """PARTITION_BY makes a table; it does not change one."""
    if wanted and wanted != (have := snapshot.target.partition_columns):
        raise StatementInvalid(
            f"{lake.display} is partitioned by {', '.join(have) or 'nothing'}, "
            f"not by {', '.join(wanted)}",
            hint="Leave PARTITION_BY out, or load into a new table.",
        )
