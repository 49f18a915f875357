"""The share of a run that is one pair of trees: listed, decided, copied by workers."""

from __future__ import annotations

import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import islice

from calque import faults
from calque.errors import (
    Aborted,
    AlreadyExists,
    CalqueError,
    InvalidInput,
    IsSameFile,
    ResourceExhausted,
)
from calque.operator.paths import collapse
from calque.transfer.jobs.journal import Journal
from calque.transfer.model import EVERYTHING, Decision, KeyRange, Pair, Row
from calque.transfer.plan.collisions import Collisions
from calque.transfer.plan.free_space import Decided, FreeSpace
from calque.transfer.plan.plan import Plan, Trees
from calque.transfer.plan.remembered import Remembered
from calque.transfer.plan.renames import Renames
from calque.transfer.plan.rules import checksums
from calque.transfer.report.rows import failed_row, kept_row, predicted_row
from calque.transfer.request.options import TreeOptions
from calque.transfer.run.backup import Backup
from calque.transfer.run.carry import RENAMED, Carrier
from calque.transfer.run.clearing import Clearing
from calque.transfer.run.copy_keeper import CopyKeeper
from calque.transfer.run.deletes import delete_listed, remove_emptied
from calque.transfer.run.frontier import Frontier, NoRange
from calque.transfer.run.other_entries import OtherEntries
from calque.transfer.run.ranges import OpenRange, RangePool
from calque.transfer.run.shared import Cluster, RangeResult, Shared
from calque.transfer.run.work_queue import WorkQueue
from calque.values import Metadata

_PAGE = 1000
_PAGES_ALONE = 16
"""Pages that one thread lists before others help: small trees cost no request more than pages."""
_LISTERS = 8
_FULL = ResourceExhausted.__name__
_AHEAD = 2000
"""Objects that are decided before a worker takes them."""


class TreeJob:
    """Copies one tree, the ``number``-th of its run, and notes what is to be deleted."""

    def __init__(
        self,
        shared: Shared,
        trees: Trees,
        number: int = 0,
        *,
        ranges: Sequence[KeyRange] | None = None,
        pages: int = 0,
        elsewhere: bool = False,
    ) -> None:
        """``ranges``: only these; ``pages``: stop after so many; ``elsewhere``: the ranges are
        copied by a cluster, and here only what an earlier process left by name."""
        self._shared = shared
        self._trees = trees
        self._number = number
        self._journal = shared.journal
        self._unfinished = shared.journal.unfinished if shared.journal else None
        self._options = shared.options
        self._remembered = _remember(trees, shared.options)
        self.plan = Plan(trees, shared.options, self._remembered)
        collisions = None if elsewhere or ranges else Collisions.of(trees, shared.options)
        if collisions is not None:
            self.plan = replace(self.plan, collides=collisions.find, is_given=collisions.is_given)
        if shared.options.track_renames:
            self.plan = replace(self.plan, twin=Renames(self.plan).twin)
        self._others = OtherEntries(shared, trees, number, self._add)
        self.clearing = Clearing(shared, self.plan, self._add)
        self._queue: WorkQueue[tuple[Decision, Frontier]] = WorkQueue(_AHEAD)
        self._carrier = Carrier(
            trees.source,
            trees.target,
            shared.options,
            limit=shared.limit,
            stopping=shared.stopping,
            moved=shared.progress.add_moved,
            dropped=shared.collector.note_dropped,
            keeper=None if shared.journal is None else CopyKeeper(shared.journal, number),
            renames=shared.moves,
            backup=None if trees.backup is None else Backup(trees.target, trees.backup),
        )
        left = self._unfinished
        self._named = frozenset(
            path for tree, path in (left.copies if left is not None else ()) if tree == number
        )
        """Large copies that an earlier process had under way; their ranges may hold them too."""
        if ranges is None:
            ranges = [EVERYTHING] if left is None else left.spans_of(number)
        self._space = FreeSpace.of(trees, shared.options)
        self._elsewhere = list(ranges) if elsewhere else None
        self._most_pages = pages
        self._ranges = RangePool([] if elsewhere else ranges, splits=trees.can_be_cut)
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._pages = 0
        self._listing = 0
        self._begun = False
        self._emptied: set[str] = set()
        self._errors: list[BaseException] = []

    def copy(self) -> None:
        """List, decide and copy; returns when every object has its row.

        Raises what stopped a listing. What was decided before is copied all the same.
        """
        self._start(self._list, 1)
        self._start(self._work, self._options.concurrent)
        try:
            self._join()
        except KeyboardInterrupt:
            self.stop()
            self._join()
        self._carrier.flush()
        remove_emptied(self._trees.source, self._emptied)
        if self._errors:
            raise self._errors[0]
        if not self._shared.stopping.is_set() and self._unfinished is None:
            self.clearing.refuse_empty()

    def copy_on(self, cluster: Cluster) -> None:
        """The same on a cluster: ranges go there, rows and what is left of them come back."""
        while self._elsewhere and not self._shared.stopping.is_set():
            results, left = cluster.run(self._number, self._elsewhere, self._trees.can_be_cut)
            failed = None
            told = [each for result in results for each in result.huge]
            huge = [each for each in told if (self._number, each.path) not in self._shared.known]
            for each in huge:
                if self._journal is not None:  # before its range counts as done
                    self._journal.keep_copy(self._number, each.path)
            with nullcontext() if self._journal is None else self._journal.lock:
                for result in results:
                    self._take(result)
                    left += result.left
                    failed = failed or result.error
                self._elsewhere = left
            if failed is not None:
                raise failed
            for each in huge:
                if not self._shared.stopping.is_set():
                    self._carry_split(cluster, each)

    def _carry_split(self, cluster: Cluster, decision: Decision) -> None:
        """A huge object, in parts that several tasks bring."""

        def done(row: Row, made: Metadata | None) -> None:
            if row.error == Aborted.__name__ and self._shared.stopping.is_set():
                return
            if made is not None:
                row = self._note_made(decision, row, made)
            row = self._add(row)
            self._shared.progress.add_ended()
            if self._journal is not None:
                self._end_apart(self._journal, decision.path, row)
            if row.is_problem and self._options.on_error == "stop":
                self._shared.gave_up.set()
                self.stop()

        self._shared.progress.add_copy(decision.size)
        spread = partial(cluster.copy_parts, self._number)
        self._carrier.carry_split(decision, spread, done)

    def _take(self, result: RangeResult) -> None:
        """Count what a task has done; the caller holds the journal's lock."""
        self._shared.collector.take(result.listed, result.listed_bytes, result.dropped)
        self._shared.progress.listed += result.listed
        for row in result.rows:
            path = row.path.removeprefix(self._trees.label)
            if (self._number, path) in self._shared.known:
                continue
            self._shared.collector.add(row)
            if row.route is not None:
                self._shared.progress.add_copy(row.size or 0)
                self._shared.progress.add_moved(row.size or 0)
                self._shared.progress.add_ended()
            if self._journal is not None:
                self._journal.settle(row)

    def left(self) -> list[KeyRange]:
        """What is still to be acted on."""
        return list(self._elsewhere or ()) + self._ranges.unfinished()

    def cut_left(self) -> list[KeyRange]:
        """The same in smaller pieces, cut where the pages that were listed say."""
        return self._ranges.cut_unfinished()

    def stop(self) -> None:
        """Begin nothing more; what is in flight comes to its end."""
        self._shared.stopping.set()
        self._ranges.stop()
        self._queue.drop()

    def _start(self, target: Callable[[], None], count: int) -> None:
        for _ in range(count):
            thread = threading.Thread(target=self._guard(target), name="calque-tree", daemon=True)
            with self._lock:
                self._threads.append(thread)
            thread.start()

    def _join(self) -> None:
        """Wait for listers, which may start others, and then for workers."""
        while True:
            with self._lock:
                living = [thread for thread in self._threads if thread.is_alive()]
            if not living:
                return
            for thread in living:
                thread.join()

    def _guard(self, target: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            try:
                target()
            except BaseException as error:
                self._errors.append(error)
                self._ranges.stop()
                self._queue.close()

        return run

    # Listing

    def _list_named(self) -> None:
        """Begin with the large copies that an earlier process had under way."""
        if not self._named:
            return
        paths = tuple(self._named)
        sides = (replace(side, only=paths) for side in (self._trees.source, self._trees.target))
        source, target = sides
        trees = replace(self._trees, source=source, target=target)
        plan = replace(self.plan, trees=trees, tell=self._others.tell)
        decide, frontier = plan.decider(), Frontier(NoRange(), self._journal)
        for pair in plan.pairs():  # a part of each is on the disk already
            self._act(pair, decide(pair), frontier)

    def _list(self) -> None:
        with self._lock:
            first, self._begun = not self._begun, True
        if first:
            self._list_named()
        for span in self._ranges:
            with self._lock:
                self._listing += 1
            self._list_range(span)
            with self._lock:
                self._listing -= 1
            self._flush_last()
        # The pool has nothing more to give only when every path was acted on.
        self._queue.close()

    def _flush_last(self) -> None:
        """Files of a batch that nothing will fill up any more are not left waiting for that."""
        if not self._listing and not self._queue.is_waiting:
            self._carrier.flush()

    def _list_range(self, span: OpenRange) -> None:
        frontier = Frontier(span, self._journal)
        others = self._others.wait()
        plan = replace(self.plan, tell=others.add)
        decide = plan.decider()
        for page in _pages(plan.pairs(span.span)):
            faults.point("tree.listed")
            mine = span.claim([pair.path for pair in page])
            self._act_on(decide, page[:mine], frontier)
            if mine == len(page):
                others.tell_up_to(page[-1].path)
            self._call_help(page)
            if mine < len(page) or self._shared.stopping.is_set():
                break
            if self._most_pages and self._pages >= self._most_pages:
                self._ranges.stop()  # the rest is left, to whoever asked for no more
                return
        if self._shared.stopping.is_set():
            return
        others.tell_up_to(span.seal())
        frontier.close()

    def _call_help(self, page: Sequence[Pair]) -> None:
        """Let others list too, once a tree is seen to be large, where servers keep borders."""
        with self._lock:
            self._pages += 1
            wanted = self._pages == _PAGES_ALONE and self._trees.can_be_cut
        if wanted and self._keeps_borders(page):
            self._start(self._list, min(_LISTERS, self._options.concurrent) - 1)

    def _keeps_borders(self, page: Sequence[Pair]) -> bool:
        kept = self._trees.source.keeps_borders([each.path for each in page if each.source])
        kept = kept and self._trees.target.keeps_borders(
            [each.path for each in page if each.target]
        )
        if not kept:
            self._ranges.forbid_splits()
        return kept

    def _act_on(
        self,
        decide: Callable[[Pair], Decision | None],
        pairs: Iterable[Pair],
        frontier: Frontier,
    ) -> None:
        # Also those that an earlier process had under way are decided: a plan counts what it sees.
        all_decided = ((pair, decide(pair)) for pair in pairs)
        decided: Iterator[Decided] = (
            each for each in all_decided if each[0].path not in self._named
        )
        if self._space is not None:
            decided = self._space.reserve(decided)
        for pair, decision in decided:
            self._act(pair, decision, frontier)

    def _act(self, pair: Pair, decision: Decision | None, frontier: Frontier) -> None:
        if (self._number, pair.path) in self._shared.known:
            return
        if self._shared.moves and decision is not None:
            decision = _prove(decision)
        if pair.source is not None and decision is not None:
            self._shared.progress.add_listed()
            self._shared.collector.note_listed(pair.source.size)
            self.clearing.note_taken(pair.source)
        if decision is None:
            return
        if decision.step == "delete":
            self.clearing.note(decision)
        elif decision.step == "copy":
            self._plan_copy(decision, frontier)
        else:
            frontier.begin(decision.path)
            frontier.end(decision.path, self._settle(decision))

    def _plan_copy(self, decision: Decision, frontier: Frontier) -> None:
        self._shared.progress.add_copy(decision.size)
        if self._options.dry_run:
            self._add(predicted_row(decision))
            return
        if self._shared.hand_over is not None and self._carrier.can_split(decision.size):
            self._shared.hand_over(decision)
            return
        frontier.begin(decision.path)
        large = self._carrier.is_large(decision.pair)
        self._queue.put((decision, frontier), size=decision.size, large=large)

    def _settle(self, decision: Decision) -> Row:
        """Decisions that need no worker."""
        source, target = decision.pair.source, decision.pair.target
        if decision.step == "refuse":
            kind = AlreadyExists if target is not None else InvalidInput
            return self._add(failed_row(decision, kind(decision.why), 0.0))
        row = kept_row(decision)
        if self._shared.moves and decision.step == "keep" and source is not None:
            row = self._delete_moved(decision, source) or row
        return self._add(row)

    # Copying

    def _work(self) -> None:
        while (work := self._queue.take()) is not None:
            decision, frontier = work
            self._carry(decision, frontier)
            self._flush_last()

    def _carry(self, decision: Decision, frontier: Frontier) -> None:
        apart = self._keep_apart(decision, frontier)

        def done(row: Row, made: Metadata | None) -> None:
            if row.error == Aborted.__name__ and self._shared.stopping.is_set():
                return  # nothing became of it, so it has no row: whoever resumes copies it
            faults.point("tree.copied")
            if made is not None:
                row = self._note_made(decision, row, made)
            row = self._add(row)
            faults.point("tree.told")
            self._shared.progress.add_ended()
            if apart is None:
                frontier.end(decision.path, row)
            else:
                self._end_apart(apart, decision.path, row)
            if row.is_problem and (self._options.on_error == "stop" or row.error == _FULL):
                self._shared.gave_up.set()
                self.stop()

        self._carrier.carry(decision, done)

    def _keep_apart(self, decision: Decision, frontier: Frontier) -> Journal | None:
        """A large copy is noted by itself, so that its range need not wait for it to go on."""
        journal = self._journal
        if journal is None or not self._carrier.is_large(decision.pair):
            return None
        known = self._unfinished is not None and (
            (self._number, decision.path) in self._unfinished.copies
        )
        if not known:  # what it has of an earlier process is kept
            journal.keep_copy(self._number, decision.path)
        frontier.end(decision.path)
        return journal

    def _end_apart(self, journal: Journal, path: str, row: Row) -> None:
        with journal.lock:
            journal.settle(row)
        journal.forget_copy(self._number, path)

    def _note_made(self, decision: Decision, row: Row, made: Metadata) -> Row:
        source = decision.pair.source
        assert source is not None
        if self._remembered is not None and not self._shows_itself(source, made):
            self._remembered.keep(decision.path, source, made)
        if not self._shared.moves:
            return row
        if row.route == RENAMED:
            self._note_emptied(decision.path)
            return row
        return self._delete_moved(decision, source) or row

    def _delete_moved(self, decision: Decision, source: Metadata) -> Row | None:
        """Delete what was moved; a row that says why it could not be."""
        try:
            self._refuse_alias(source.path, self._trees.target.key(decision.pair.target_path))
            delete_listed(self._trees.source.service, source)
        except CalqueError as error:
            return replace(
                failed_row(decision, error, 0.0), why=f"copied, but not deleted: {error.message}"
            )
        self._note_emptied(decision.path)
        return None

    def _refuse_alias(self, source: str, target: str) -> None:
        """Some servers collapse ``//`` or fold cases and unicode forms: two keys, one object."""
        ours, theirs = self._trees.source, self._trees.target
        if ours.is_local:
            return  # renamed, or of another file system
        names = (ours.service.identity(source).name, theirs.service.identity(target).name)
        if _fold(names[0]) == _fold(names[1]):
            raise IsSameFile(f"{source!r} and {target!r} may be one object to the server")

    def _note_emptied(self, path: str) -> None:
        folder = path.rpartition("/")[0]
        if folder:
            with self._lock:
                self._emptied.add(folder)

    def _shows_itself(self, source: Metadata, made: Metadata) -> bool:
        """Whether the listings alone will tell that both are equal."""
        ours = checksums(self._trees.source.service.capability, source)
        theirs = checksums(self._trees.target.service.capability, made)
        return any(theirs.get(name) == value for name, value in ours.items())

    def _add(self, row: Row) -> Row:
        label = self._trees.label
        told = row
        if label:
            into = None if row.target is None else label + row.target
            told = replace(row, path=label + row.path, target=into)
        self._shared.collector.add(told)
        return told

    def close(self) -> None:
        self.clearing.close()
        if self._remembered is not None:
            self._remembered.close()


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


def _prove(decision: Decision) -> Decision:
    """A move deletes its source, so a target that only seems to be equal is made anew."""
    if decision.step != "keep" or decision.rule == "checksum":
        return decision
    target = decision.pair.target
    if decision.rule == "identity" and target is not None and target.etag is not None:
        return decision  # of a file only size and time are remembered, which others can set
    if decision.rule == "never":
        return replace(decision, step="skip", why="the target is there, and was not compared")
    return replace(decision, step="copy")


def _fold(key: str) -> str:
    """A key as the least careful of servers may see it."""
    return unicodedata.normalize("NFC", collapse(key)).casefold()


def _remember(trees: Trees, options: TreeOptions) -> Remembered | None:
    wanted = trees.source.only is None and options.compare in ("default", "always")
    return Remembered.of(trees.source, trees.target) if wanted else None
