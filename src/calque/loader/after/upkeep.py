"""Records of files that were met again: kept alive, and brought up to date."""

from __future__ import annotations

from calque.ledger import Ledger, TableRow
from calque.ledger.files import Seen, refresh, renew
from calque.loader.plan.compare import Decision

MOST_WAITING = 5000
"""Records that wait to be written together; a stage may have millions that are due at once."""


class RecordUpkeep:
    """Collects what a comparison found due and writes it in a few transactions.

    A comparison writes nothing itself, so that one who only looks can run the very same one. It is
    made before the comparison begins: no file was looked at earlier than that.
    """

    def __init__(self, ledger: Ledger, table: TableRow) -> None:
        self._ledger = ledger
        self._table = table
        self._looked_at = ledger.now()
        self._due: list[str] = []
        self._outdated: list[Seen] = []

    def note(self, one: Decision) -> None:
        """Keep in mind what the record of a file needs."""
        if one.known is None or not (one.renewal_due or one.record_outdated):
            return
        if one.renewal_due:
            self._due.append(one.known.location)
        if one.record_outdated:
            self._outdated.append((one.known, one.file.identity, one.file.about))
        if len(self._due) + len(self._outdated) >= MOST_WAITING:
            self.write()

    def write(self) -> None:
        """Write what waits."""
        due, self._due = self._due, []
        outdated, self._outdated = self._outdated, []
        if due:
            renew(self._ledger, self._table, due)
        if outdated:
            refresh(self._ledger, self._table, outdated, self._looked_at)
