"""The share of a run that is one pair of trees: listed, decided, copied by workers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from calque import faults, tracing
from calque.errors import Aborted, AlreadyExists, InvalidInput
from calque.transfer.model import EVERYTHING, Decision, KeyRange, Pair, Row
from calque.transfer.plan.collisions import Collisions
from calque.transfer.plan.copied_before import Remembered
from calque.transfer.plan.free_space import FreeSpace
from calque.transfer.plan.plan import Plan, Trees
from calque.transfer.plan.renames import Renames
from calque.transfer.plan.rules import checksums
from calque.transfer.report.rows import failed_row, kept_row
from calque.transfer.request.options import TreeOptions
from calque.transfer.run.backup import Backup
from calque.transfer.run.cluster_share import Elsewhere
from calque.transfer.run.copies.carry import RENAMED, Carrier
from calque.transfer.run.copies.copy_keeper import CopyKeeper
from calque.transfer.run.interrupts import (
    GRACE_SECONDS,
    Look,
    note_signals,
    see_through,
    wait_until,
)
from calque.transfer.run.lister import Lister
from calque.transfer.run.other_entries import OtherEntries
from calque.transfer.run.range_progress import Frontier
from calque.transfer.run.ranges import RangePool
from calque.transfer.run.removals.clearing import Clearing
from calque.transfer.run.removals.moves import Moves
from calque.transfer.run.removals.two_trees import look_prefix
from calque.transfer.run.run_context import Cluster, Shared
from calque.transfer.run.work_queue import WorkQueue
from calque.values import Metadata

if TYPE_CHECKING:
    from calque.transfer.jobs.journal import Journal

_LISTERS = 8
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
        left_out: Collection[str] = (),
        pages: int = 0,
        elsewhere: bool = False,
    ) -> None:
        """``ranges``: only these, but for the paths ``left_out``; ``pages``: stop after so many;
        ``elsewhere``: the ranges are copied by a cluster, and here only what an earlier process
        left by name."""
        self._shared = shared
        self._trees = trees
        self._number = number
        self._journal = shared.journal
        self._unfinished = shared.journal.unfinished if shared.journal else None
        self._options = shared.options
        self._remembered = _remember(trees, shared.options)
        self.plan = Plan(trees, shared.options, self._remembered, may_be_gone=shared.moved_before)
        if shared.moves:
            own = look_prefix(trees.source, trees.target)
            self.plan = replace(self.plan, passed_over=own)
        collisions = None if elsewhere or ranges else Collisions.of(trees, shared.options)
        if collisions is not None:
            self.plan = replace(self.plan, collides=collisions.find, is_given=collisions.is_given)
        if shared.options.track_renames:
            self.plan = replace(self.plan, twin=Renames(self.plan).twin)
        self._moves = Moves(shared, trees, number)
        self.clearing = Clearing(shared, self.plan, number, self._add)
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
            renames=shared.moves and shared.delete_later is None,
            backup=self._backup(),
        )
        left = self._unfinished
        self._named = frozenset(
            path for tree, path in (left.copies if left is not None else ()) if tree == number
        )
        """Large copies that an earlier process had under way; their ranges may hold them too."""
        if ranges is None:
            ranges = [EVERYTHING] if left is None else left.spans_of(number)
        self._elsewhere = (
            Elsewhere(shared, trees, number, ranges, self._moves, self._named, self._carry_split)
            if elsewhere
            else None
        )
        self._ranges = RangePool([] if elsewhere else ranges, splits=trees.can_be_cut)
        self._lister = Lister(
            self.plan,
            self._ranges,
            OtherEntries(shared, trees, number, self._add, self._moves.note_empty),
            self._act,
            self._call_help,
            self._moves.announce if shared.moves and shared.journal is not None else None,
            stopping=shared.stopping,
            journal=shared.journal,
            left_out=self._named.union(left_out),
            space=FreeSpace.of(trees, shared.options),
            most_pages=pages,
        )
        self._lock = threading.Lock()
        self._ended = threading.Condition()
        self._living = 0
        self._begun = False
        self._told_listed = False
        self._errors: list[BaseException] = []

    def _backup(self) -> Backup | None:
        trees = self._trees
        if trees.backup is None:
            return None
        resumed = None if self._unfinished is None else trees.source
        return Backup(trees.target, trees.backup, resumed=resumed)

    def copy(self) -> None:
        """List, decide and copy; returns when every object has its row.

        Raises what stopped a listing. What was decided before is copied all the same.
        """
        try:
            with note_signals() as look:
                # Within, or a signal while a thread is being started breaks what starts it.
                self._start(self._list, 1)
                self._start(self._work, self._options.concurrent)
                try:
                    self._join(look)
                except KeyboardInterrupt:
                    self._see_out(look)
            see_through(self._carrier.flush, self.stop)
        except KeyboardInterrupt:  # who asks a second time waits for nothing else
            self._carrier.give_up()
            self._join(lambda: None, GRACE_SECONDS / 4)  # what is just being written goes, too
            raise
        self._moves.remove_emptied()
        if self._errors:
            raise self._errors[0]
        if not self._shared.stopping.is_set() and self._unfinished is None:
            self.clearing.refuse_empty()

    def copy_on(self, cluster: Cluster) -> None:
        """The same on a cluster."""
        if self._elsewhere is not None:
            self._elsewhere.copy_on(cluster)

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
                self._journal.end_copy(self._number, decision.path, row)

        self._shared.progress.add_copy(decision.size)
        spread = partial(cluster.copy_parts, self._number)
        self._carrier.carry_split(decision, spread, done)

    def list_left(self) -> list[KeyRange]:
        """What is still to be acted on."""
        elsewhere = [] if self._elsewhere is None else list(self._elsewhere.left)
        return elsewhere + self._ranges.unfinished()

    def cut_left(self, pieces: int) -> list[KeyRange]:
        """The same in smaller pieces, cut where the pages that were listed say."""
        return self._ranges.cut_unfinished(pieces)

    def stop(self) -> None:
        """Begin nothing more; what is in flight comes to its end."""
        self._shared.stopping.set()
        self._ranges.stop()
        self._queue.drop()

    def _start(self, target: Callable[[], None], count: int) -> None:
        with self._ended:
            self._living += count
        for _ in range(count):
            run = tracing.carry(self._guard(target))
            threading.Thread(target=run, name="calque-tree", daemon=True).start()

    def _join(self, look: Look, seconds: float | None = None) -> bool:
        """Wait for listers, which may start others, and then for workers; False: not all ended."""
        # By a count, and not by join: one that was interrupted takes its thread for ended.
        return wait_until(self._ended, lambda: not self._living, look, seconds)

    def _see_out(self, look: Look) -> None:
        """Stopped by hand: what is in flight may end; large copies that do not are given up."""
        self.stop()
        if not self._join(look, GRACE_SECONDS):
            self._carrier.abort()
            self._join(look)

    def _guard(self, target: Callable[[], None]) -> Callable[[], None]:
        def run() -> None:
            try:
                target()
            except BaseException as error:
                self._errors.append(error)
                self._ranges.stop()
                self._queue.close()
            finally:
                with self._ended:
                    self._living -= 1
                    self._ended.notify_all()

        return run

    # Listing

    def _list(self) -> None:
        with self._lock:
            first, self._begun = not self._begun, True
        if first:
            self._lister.list_named(self._named)
        for span in self._ranges:
            self._lister.list_range(span)
            self._tell_listed()
            self._flush_last()
        # The pool has nothing more to give only when every path was acted on.
        self._queue.close()

    def _tell_listed(self) -> None:
        """Totals are known from the moment at which all was listed, long before all is copied."""
        with self._lock:
            now = not self._told_listed and self._ranges.is_listed
            self._told_listed |= now
        if now:
            self._shared.progress.end_listing(self._number)

    def _call_help(self) -> None:
        self._start(self._list, min(_LISTERS, self._options.concurrent) - 1)

    def _flush_last(self) -> None:
        """Files of a batch that nothing will fill up any more are not left waiting for that."""
        if not self._lister.is_busy and not self._queue.is_waiting:
            self._carrier.flush()

    def _act(self, pair: Pair, decision: Decision | None, frontier: Frontier) -> None:
        if (self._number, pair.path) in self._shared.known:
            return
        if pair.source is None and self._tell_moved(pair.path, frontier):
            return
        if self._shared.moves and decision is not None:
            decision = self._moves.decide(decision)
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

    def _tell_moved(self, path: str, frontier: Frontier) -> bool:
        """Whether an earlier process has moved it, by a request that came late: told now."""
        if not self._moves.is_watched(path):
            return False
        frontier.begin(path)
        row = self._moves.find_late(path)
        frontier.end(path, None if row is None else self._add(row))
        return True

    def _plan_copy(self, decision: Decision, frontier: Frontier) -> None:
        self._shared.progress.add_copy(decision.size)
        if self._options.dry_run:
            self._add(self._carrier.predict(decision))
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
            error = decision.error or kind(decision.why)
            return self._add(failed_row(decision, error, 0.0))
        row = kept_row(decision)
        if self._shared.moves and decision.step == "keep" and source is not None:
            row = self._moves.delete(decision.path, source, row)
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
            if row.outcome == "changed":
                row = self._moves.find_late(decision.path) or row
            row = self._add(row)
            faults.point("tree.told")
            self._shared.progress.add_ended()
            if apart is None:
                frontier.end(decision.path, row)
            else:
                apart.end_copy(self._number, decision.path, row)

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

    def _note_made(self, decision: Decision, row: Row, made: Metadata) -> Row:
        source = decision.pair.source
        assert source is not None
        if self._remembered is not None and not self._shows_itself(source, made):
            self._remembered.keep(decision.path, source, made)
        if not self._shared.moves:
            return row
        if row.route == RENAMED:
            self._moves.note_gone(decision.path)
            return row
        return self._moves.delete(decision.path, source, row)

    def _shows_itself(self, source: Metadata, made: Metadata) -> bool:
        """Whether the listings alone will tell that both are equal."""
        ours = checksums(self._trees.source.service.capability, source)
        theirs = checksums(self._trees.target.service.capability, made)
        return any(theirs.get(name) == value for name, value in ours.items())

    def _add(self, row: Row) -> Row:
        told = row.under(self._trees.label)
        self._shared.collector.add(told)
        if self._shared.gives_up_at(told):
            self._shared.gave_up.set()
            self.stop()
        return told

    def close(self) -> None:
        self.clearing.close()
        if self._remembered is not None:
            self._remembered.close()


def _remember(trees: Trees, options: TreeOptions) -> Remembered | None:
    wanted = trees.source.only is None and options.compare in ("default", "always")
    return Remembered.of(trees.source, trees.target) if wanted else None
