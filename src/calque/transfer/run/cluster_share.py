"""The share of a run that a cluster does: ranges go there, rows and what is left come back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace

from calque.transfer.model import Decision, KeyRange, Row
from calque.transfer.plan.plan import Trees
from calque.transfer.run.removals.moves import Moves
from calque.transfer.run.run_context import Cluster, RangeResult, Shared


class Elsewhere:
    """One pair of trees as the driver of a cluster sees it: it holds ranges, never names."""

    def __init__(
        self,
        shared: Shared,
        trees: Trees,
        number: int,
        ranges: Sequence[KeyRange],
        moves: Moves,
        left_out: Collection[str],
        carry_split: Callable[[Cluster, Decision], None],
    ) -> None:
        """``left_out``: paths that this process acts on itself; ``carry_split`` copies one object
        that is too large for a task, in parts that several bring."""
        self._shared = shared
        self._trees = trees
        self._number = number
        self._moves = moves
        self._carry_split = carry_split
        known = (path for tree, path in shared.known if tree == number)
        self._left_out = frozenset(left_out).union(known)
        self._watched = {path for tree, path in shared.watched if tree == number}
        self.left = list(ranges)

    def copy_on(self, cluster: Cluster) -> None:
        """Copy all that is left; raises what stopped a listing, when the rest has its rows."""
        while self.left and not self._shared.stopping.is_set():
            results, left = cluster.run(
                self._number,
                self.left,
                self._trees.can_be_cut,
                self._left_out,
                self._shared.moved_before,
            )
            failed = None
            journal = self._shared.journal
            acts = [self._announce(result) for result in results]
            rows = [self._settle(result) for result in results]
            left += [span for result in results for span in result.left]
            late = self._find_late(rows, left)
            found = (each for result in results for each in result.huge)
            huge = sorted(found, key=lambda each: each.size, reverse=True)
            for each in huge:
                if journal is not None:  # before its range counts as done
                    journal.keep_copy(self._number, each.path)
            with nullcontext() if journal is None else journal.lock:
                for result, told in zip(results, rows, strict=True):
                    self._take(result, told)
                    failed = failed or result.error
                for row in late:
                    self._count(row)
                self.left = left
                for number in filter(None, acts):
                    if journal is not None:  # their rows were counted one by one
                        journal.settle_acts(number, ())
            if failed is not None:
                raise failed
            for each in huge:
                if not self._shared.stopping.is_set():
                    self._carry_split(cluster, each)
        self._moves.remove_emptied()

    def _announce(self, result: RangeResult) -> int | None:
        """Sources that are about to go are in no listing afterwards."""
        journal, sources, cut = self._shared.journal, dict(result.moved), len(self._trees.label)
        if journal is None or not sources:
            return None
        rows = (replace(row, path=row.path[cut:]) for row in result.rows)
        return journal.announce(self._number, [row for row in rows if row.path in sources])

    def _settle(self, result: RangeResult) -> Sequence[Row]:
        """The rows of a task whose copies count, and so what they were made of may go."""
        sources = dict(result.moved)
        if not sources and not self._watched:
            return result.rows

        def settle(row: Row) -> Row:
            path = row.path.removeprefix(self._trees.label)
            if row.outcome == "changed":
                late = self._moves.find_late(path)
                return row if late is None else late.under(self._trees.label)
            source = sources.get(path)
            return row if source is None else self._moves.delete(path, source, row)

        with ThreadPoolExecutor(self._shared.options.concurrent, "calque-move") as pool:
            return list(pool.map(settle, result.rows))

    def _find_late(self, told: Sequence[Sequence[Row]], left: Sequence[KeyRange]) -> list[Row]:
        """Rows of what an earlier process has moved by requests that came late: after the look of
        this one, and before a task has listed it. Tasks know nothing of it."""
        ended = {path for path in self._watched if not any(span.holds(path) for span in left)}
        self._watched -= ended
        label = self._trees.label
        missed = ended.difference(row.path.removeprefix(label) for rows in told for row in rows)
        found = map(self._moves.find_late, sorted(path for path in missed if self._is_due(path)))
        return [row.under(label) for row in found if row is not None]

    def _is_due(self, path: str) -> bool:
        return path not in self._left_out and self._moves.is_watched(path)

    def _take(self, result: RangeResult, rows: Sequence[Row]) -> None:
        """Count what a task has done; the caller holds the journal's lock."""
        shared = self._shared
        shared.collector.take(result.listed, result.listed_bytes, result.dropped)
        shared.progress.listed += result.listed
        for row in rows:
            self._count(row)
            if row.route is not None:
                shared.progress.add_copy(row.size or 0)
                shared.progress.add_moved(row.size or 0)
                shared.progress.add_ended()

    def _count(self, row: Row) -> None:
        self._shared.collector.add(row)
        if self._shared.journal is not None:
            self._shared.journal.settle(row)
        if self._shared.gives_up_at(row):
            self._shared.gave_up.set()
            self._shared.stopping.set()
