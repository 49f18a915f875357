"""Ranges of two trees, listed page by page; each pair is decided and handed on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from calque import faults
from calque.errors import CalqueError
from calque.transfer.model import Decision, KeyRange, Pair
from calque.transfer.plan.free_space import Decided, FreeSpace
from calque.transfer.plan.plan import Plan
from calque.transfer.run.other_entries import OtherEntries, Waiting
from calque.transfer.run.range_progress import Frontier, NoRange
from calque.transfer.run.ranges import OpenRange, RangePool

if TYPE_CHECKING:
    from calque.transfer.jobs.journal import Journal

_PAGE = 1000
_PAGES_ALONE = 16
"""Pages that one thread lists before others help: small trees cost no request more than pages."""

Act = Callable[[Pair, Decision | None, Frontier], None]
"""Gets each pair with what is to be done with it, in the order of keys of its range."""


Announce = Callable[[Sequence[Decided], KeyRange], None]
"""Gets the decisions of a page, and the range that it is."""


class Lister:
    """Lists ranges of a pool, on as many threads as call it."""

    def __init__(
        self,
        plan: Plan,
        ranges: RangePool,
        others: OtherEntries,
        act: Act,
        call_help: Callable[[], None],
        announce: Announce | None = None,
        *,
        stopping: threading.Event,
        journal: Journal | None = None,
        left_out: Collection[str] = (),
        space: FreeSpace | None = None,
        most_pages: int = 0,
    ) -> None:
        """``call_help`` brings more threads; ``announce`` hears of a page before the first of it is
        acted on; ``left_out``: paths that somebody else acts on;
        ``most_pages``: the rest is left to whoever asked for no more."""
        self._plan = plan
        self._ranges = ranges
        self._others = others
        self._act = act
        self._call_help = call_help
        self._announce = announce
        self._stopping = stopping
        self._journal = journal
        self._left_out = left_out
        self._space = space
        self._most_pages = most_pages
        self._lock = threading.Lock()
        self._pages = 0
        self._busy = 0

    @property
    def is_busy(self) -> bool:
        """Whether any range is being listed."""
        return bool(self._busy)

    def list_named(self, paths: Collection[str]) -> None:
        """Act on some paths alone, of which a part may be at the target already."""
        if not paths:
            return
        trees = self._plan.trees
        source, target = (replace(side, only=tuple(paths)) for side in (trees.source, trees.target))
        frontier = Frontier(NoRange(), self._journal)
        others = self._others.wait(frontier)
        plan = replace(
            self._plan, trees=replace(trees, source=source, target=target), tell=others.add
        )
        decide = plan.decider()
        for pair in plan.pairs():
            self._act(pair, decide(pair), frontier)
        others.tell_up_to(None)

    def list_range(self, span: OpenRange) -> None:
        """List a range to its end, or to where it ends now that others have taken the rest."""
        with self._lock:
            self._busy += 1
        try:
            self._list_pages(span)
        finally:
            with self._lock:
                self._busy -= 1

    def _list_pages(self, span: OpenRange) -> None:
        frontier = Frontier(span, self._journal)
        others = self._others.wait(frontier)
        plan = replace(self._plan, tell=others.add)
        decide = plan.decider()
        for page in _pages(plan.pairs(span.span)):
            faults.point("tree.listed")
            before = span.after
            mine = span.claim([pair.path for pair in page])
            self._act_on(decide, page[:mine], frontier, before, others)
            pages = self._count_page(page)
            if mine < len(page) or self._stopping.is_set():
                break
            if self._most_pages and pages >= self._most_pages:
                self._ranges.stop()
                return
        if self._stopping.is_set():
            return
        others.tell_up_to(span.seal())
        frontier.close()

    def _count_page(self, page: Sequence[Pair]) -> int:
        """Let others list too, once a tree is seen to be large, where servers keep borders."""
        with self._lock:
            self._pages += 1
            pages = self._pages
        if pages == _PAGES_ALONE and self._plan.trees.can_be_cut and self._keeps_borders(page):
            self._call_help()
        return pages

    def _keeps_borders(self, page: Sequence[Pair]) -> bool:
        trees = self._plan.trees
        kept = trees.source.keeps_borders([each.path for each in page if each.source])
        kept = kept and trees.target.keeps_borders([each.path for each in page if each.target])
        if not kept:
            self._ranges.forbid_splits()
        return kept

    def _act_on(
        self,
        decide: Callable[[Pair], Decision | None],
        pairs: Iterable[Pair],
        frontier: Frontier,
        before: str,
        others: Waiting,
    ) -> None:
        # Also those that are left out are decided: a plan counts what it sees.
        all_decided = ((pair, decide(pair)) for pair in pairs)
        decided: Iterator[Decided] = (
            each for each in all_decided if each[0].path not in self._left_out
        )
        if self._space is not None:
            decided = self._space.reserve(decided)
        if self._announce is not None and (page := list(decided)):
            self._announce(page, KeyRange(before, page[-1][0].path))
            decided = iter(page)
        for pair, decision in decided:
            others.tell_up_to(pair.path)
            self._act(pair, decision, frontier)


def _pages(pairs: Iterator[Pair]) -> Iterator[list[Pair]]:
    """Pairs in pages; what came before an error is given out before the error is raised."""
    while True:
        page: list[Pair] = []
        try:
            page.extend(islice(pairs, _PAGE))
        except CalqueError:
            if page:
                yield page
            raise
        if not page:
            return
        yield page
