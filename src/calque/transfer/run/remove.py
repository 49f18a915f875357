"""Trees deleted: listed, counted, confirmed; each object only if it is still the one listed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from calque.errors import CalqueError, InvalidInput, NotFound
from calque.transfer.model import Decision, Pair, Row
from calque.transfer.plan.plan import Trees
from calque.transfer.plan.side import Side, Tell
from calque.transfer.report.report import Report
from calque.transfer.report.rows import predicted_row
from calque.transfer.request.filters import NO_FILTERS
from calque.transfer.run.interrupts import see_through
from calque.transfer.run.removals.deletes import (
    DeleteRows,
    Spool,
    delete_all,
    remove_emptied,
    remove_root,
)
from calque.transfer.run.removals.unreported_acts import tell_deleted, untold_of
from calque.transfer.run.run import Confirm
from calque.transfer.run.run_context import Shared


class Removal:
    """The deletion of some trees, one after the other, of what filters take of them."""

    def __init__(
        self, shared: Shared, trees: Sequence[Trees], confirm: Confirm | None = None
    ) -> None:
        """``trees``: each is its own target."""
        self._shared = shared
        self._trees = trees
        self._confirm = confirm

    @property
    def report(self) -> Report:
        return self._shared.collector.report

    def run(self) -> None:
        """Of each tree all is listed before the first is deleted: it is known what will go."""
        begun = time.monotonic()
        journal = self._shared.journal
        if journal is not None:
            journal.start(list, self._shared.collector.flush, self.stop)
        try:
            for number, trees in enumerate(self._trees):
                if not self._shared.stopping.is_set():
                    self._remove(number, trees)
        finally:
            self.report.totals.seconds += time.monotonic() - begun
        self.report.stopped = self._shared.stopping.is_set()

    def stop(self) -> None:
        """Begin nothing more; what is in flight comes to its end."""
        self._shared.stopping.set()

    def _see_through(self, work: Callable[[], None]) -> None:
        see_through(work, self.stop)

    def _remove(self, number: int, trees: Trees) -> None:
        collector, progress = self._shared.collector, self._shared.progress
        spool, empty = Spool(), set[str]()
        missing = untold_of(self._shared, number)

        def tell(path: str, kind: str | CalqueError) -> None:
            if kind == "empty folder":
                empty.add(path.rstrip("/"))
            elif isinstance(kind, str) and (number, path) not in self._shared.known:
                row = Row(path=path, outcome="skipped", rule="kind", why=kind)
                collector.add(row.under(trees.label))

        try:
            for decision in self._decisions(trees, tell):
                spool.add(decision)
                missing.pop(decision.path, None)
                collector.note_listed(decision.size)
                progress.add_listed()
            progress.end_listing(number)
            self._see_through(lambda: tell_deleted(self._shared, trees, number, missing))
            withheld = self._objection(spool)
            if withheld or self._shared.options.dry_run:
                for decision in spool:
                    if (number, decision.path) not in self._shared.known:
                        collector.add(predicted_row(decision, withheld).under(trees.label))
                self.report.no_deletes = withheld
                return
            progress.to_delete += spool.count
            self._see_through(lambda: self._delete(number, trees, iter(spool)))
            if _is_everything(trees) and not self._shared.stopping.is_set():
                remove_emptied(trees.target, empty)
                if trees.named:
                    remove_root(trees.target)
        finally:
            spool.close()

    def _decisions(self, trees: Trees, tell: Tell) -> Iterator[Decision]:
        side, filters = trees.target, trees.filters
        if _is_everything(trees) and (whole := _whole(side)):
            raise InvalidInput(
                f"{side.location()} is a whole {whole}, which rm -r does not empty",
                hint="Name a folder in it, or say what: 's3://bucket/*'.",
            )
        seen = False
        for path, entry in side.entries(trees.listed, tell=tell):
            seen = True
            if filters.takes(path, entry):
                yield Decision(Pair(path, None, entry), "delete", "always")
        if not seen and not self._is_resumed and not side.exists():
            raise NotFound(
                f"{side.location()} does not exist: there is no object and no folder of that name",
                hint="Nothing was deleted. Check the name; an object service knows no empty "
                "folders.",
            )

    @property
    def _is_resumed(self) -> bool:
        return self._shared.journal is not None and self._shared.journal.resumed

    def _objection(self, spool: Spool) -> str:
        if self._confirm is None or self._shared.options.dry_run or not spool.count:
            return ""
        with self._shared.progress.showing:
            confirmed = self._confirm(spool.count, spool.bytes, spool.first)
        return "" if confirmed else "it was not confirmed"

    def _delete(self, number: int, trees: Trees, decisions: Iterator[Decision]) -> None:
        collector, known = self._shared.collector, self._shared.known

        def add(row: Row) -> Row:
            told = row.under(trees.label)
            collector.add(told)
            return told

        delete_all(
            trees.target,
            # What could not be deleted has its row; a second one would tell of it twice.
            (each for each in decisions if (number, each.path) not in known),
            self._shared.options.concurrent,
            DeleteRows(self._shared, number, add),
            self._shared.stopping.is_set,
        )


def _is_everything(trees: Trees) -> bool:
    return trees.chosen is None and trees.filters == NO_FILTERS


def _whole(side: Side) -> str:
    """What a side is all of: a bucket, or everything that the machine has; else nothing."""
    if side.only is not None:
        return ""
    if side.is_local:
        return "file system" if side.service.location("").rstrip("/") == "file:" else ""
    return "" if side.prefix else "bucket"
