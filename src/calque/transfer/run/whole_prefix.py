"""A tree inside one store that goes as a whole: one transaction, not one for each object.

Only where the outcome is the same: all of the source is wanted as it is, and nothing stands at the
target. Then everything that lies there afterwards was brought by it, so the rows of the report are
made from a listing of the target, after the act.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from calque import faults
from calque.errors import (
    AlreadyExists,
    ConditionNotMatch,
    InvalidInput,
    NotFound,
    ResourceExhausted,
    Unsupported,
)
from calque.operator.service import PrefixMoving
from calque.transfer.model import WHOLE, KeyRange, Row, Totals
from calque.transfer.plan.plan import Trees
from calque.transfer.request.filters import NO_FILTERS
from calque.transfer.run.copies.carry import RENAMED
from calque.transfer.run.copies.large_copies import SERVER
from calque.transfer.run.run_context import Shared
from calque.values import Metadata

if TYPE_CHECKING:
    from calque.transfer.jobs.journal import Journal

_ONE_BY_ONE = (
    AlreadyExists,
    ConditionNotMatch,
    InvalidInput,
    NotFound,
    ResourceExhausted,
    Unsupported,
)
"""Refusals after which nothing was done, and each object may fare better by itself: too many of
them, one that appeared at the target, one that was written meanwhile."""


class WholePrefix:
    """The attempt to let one tree go at once."""

    def __init__(self, shared: Shared, trees: Trees, number: int) -> None:
        self._shared = shared
        self._trees = trees
        self._number = number

    def try_at_once(self, left: Callable[[], Sequence[tuple[int, KeyRange]]]) -> bool:
        """Whether it went; if not, nothing was done. ``left`` is what the journal notes before."""
        journal = self._shared.journal
        if not self._is_fit():
            return False
        if journal is not None and journal.unfinished is not None:
            # A tree for which the journal lists no open range is done: another one was under way.
            if journal.phase != WHOLE or not journal.unfinished.spans_of(self._number):
                return False
            if self._shared.moves and not self._trees.source.exists():
                self._tell(journal)  # it went, and its process died before it could say so
                return True
        # The source first: for one that is not there nothing is asked of the target.
        if not self._trees.source.exists() or self._trees.target.exists():
            return False
        if journal is not None:
            # Before it goes: afterwards there is no source that could be listed.
            journal.phase = WHOLE
            journal.note(left, self._shared.collector.flush)
        faults.point("whole.before")
        if not self._go():
            if journal is not None:
                journal.phase = "copy"
            return False
        faults.point("whole.after")
        self._tell(journal)
        return True

    def _is_fit(self) -> bool:
        """Whether all of the source goes as it is."""
        trees, options = self._trees, self._shared.options
        sides = (trees.source, trees.target)
        return (
            all(isinstance(side.service, PrefixMoving) and side.only is None for side in sides)
            and trees.filters == NO_FILTERS
            and trees.chosen is None
            and options.content_type is None
            and options.carry_tags
            and not options.carry_class
            and not options.fold_case
            and not options.dry_run
        )

    def _go(self) -> bool:
        source, target = self._trees.source, self._trees.target
        assert isinstance(source.service, PrefixMoving)

        def tell(objects: int, size: int) -> None:
            self._shared.progress.listed = objects

        try:
            source.service.move_prefix(
                source.prefix,
                target.prefix,
                into=target.service,
                copy=not self._shared.moves,
                progress=tell,
            )
        except _ONE_BY_ONE:
            self._shared.progress.listed = 0
            return False
        return True

    def _tell(self, journal: Journal | None) -> None:
        """A row for everything that was brought, unless an earlier process has written it."""
        collector, progress = self._shared.collector, self._shared.progress
        progress.listed = 0
        for path, entry in self._trees.target.entries():
            progress.add_listed()
            collector.note_listed(entry.size)
            if (self._number, path) not in self._shared.known:
                collector.add(self._row(path, entry))
            progress.add_copy(entry.size)
            progress.add_ended()
        if journal is not None:
            with journal.lock:
                journal.settled = Totals.from_json(collector.report.totals.to_json())
                journal.phase = "copy"

    def _row(self, path: str, entry: Metadata) -> Row:
        moved = self._shared.moves
        return Row(
            path=self._trees.label + path,
            outcome="copied",
            rule="new",
            size=entry.size,
            target_size=entry.size,
            source_etag=entry.etag if moved else None,
            target_etag=entry.etag,
            route=RENAMED if moved else SERVER,
        )
