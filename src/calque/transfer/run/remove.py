"""Trees deleted: listed, counted, confirmed; each object only if it is still the one listed."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

from calque.errors import InvalidInput
from calque.transfer.model import Decision, Pair
from calque.transfer.plan.places import Origin, missing
from calque.transfer.plan.side import Side
from calque.transfer.report.report import Collector
from calque.transfer.report.rows import predicted_row
from calque.transfer.request.filters import Filters
from calque.transfer.request.options import TreeOptions
from calque.transfer.run.deletes import Spool, delete_all
from calque.transfer.run.interrupts import see_through
from calque.transfer.run.run import Confirm


class Removal:
    """The deletion of one tree, of what filters take of it."""

    def __init__(
        self,
        origin: Origin,
        options: TreeOptions,
        collector: Collector,
        confirm: Confirm | None = None,
    ) -> None:
        self._origin = origin
        self._options = options
        self._collector = collector
        self._confirm = confirm
        self.stopping = threading.Event()

    def run(self) -> None:
        """List all before the first is deleted, so that it is known what will go."""
        begun = time.monotonic()
        spool = Spool()
        try:
            for decision in self._decisions():
                spool.add(decision)
                self._collector.note_listed(decision.size)
            withheld = self._objection(spool)
            if withheld or self._options.dry_run:
                for decision in spool:
                    self._collector.add(predicted_row(decision, withheld))
                self._collector.report.no_deletes = withheld
                return
            self._delete(iter(spool))
        finally:
            spool.close()
            self._collector.report.totals.seconds += time.monotonic() - begun

    def _decisions(self) -> Iterator[Decision]:
        side, filters = self._origin.side, self._options.filters
        if self._everything and (whole := _whole(side)):
            raise InvalidInput(
                f"{side.location()} is a whole {whole}, which rm -r does not empty",
                hint="Name a folder in it, or say what: 's3://bucket/*'.",
            )
        seen = False
        for path, entry in side.entries(self._origin.chosen or filters, seen=lambda: None):
            seen = True
            if filters.takes(path, entry):
                yield Decision(Pair(path, None, entry), "delete", "always")
        if not seen and not side.exists():
            raise missing(self._origin)

    @property
    def _everything(self) -> bool:
        return self._origin.chosen is None and self._options.filters == Filters()

    def _objection(self, spool: Spool) -> str:
        if self._confirm is None or self._options.dry_run or not spool.count:
            return ""
        return (
            "" if self._confirm(spool.count, spool.bytes, spool.first) else "it was not confirmed"
        )

    def _delete(self, decisions: Iterator[Decision]) -> None:
        side, add = self._origin.side, self._collector.add
        see_through(
            lambda: delete_all(
                side, decisions, self._options.concurrent, add, self.stopping.is_set
            ),
            self.stopping.set,
        )
        self._collector.report.stopped = self.stopping.is_set()


def _whole(side: Side) -> str:
    """What a side is all of: a bucket, or everything that the machine has; else nothing."""
    if side.is_local:
        return "file system" if side.service.location("").rstrip("/") == "file:" else ""
    return "" if side.prefix else "bucket"
