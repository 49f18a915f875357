"""What a target is cleared of: noted while trees are compared, deleted when all else is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from calque.errors import InvalidInput
from calque.transfer.model import Decision, Row
from calque.transfer.plan.plan import Plan
from calque.transfer.plan.side import is_marker
from calque.transfer.report.rows import predicted_row
from calque.transfer.run.backup import Backup
from calque.transfer.run.removals.deletes import DeleteRows, Spool, delete_all
from calque.transfer.run.removals.unreported_acts import tell_deleted, untold_of
from calque.transfer.run.run_context import Shared
from calque.values import Metadata, count_of


class Clearing:
    """The deletes of one pair of trees."""

    def __init__(self, shared: Shared, plan: Plan, number: int, add: Callable[[Row], Row]) -> None:
        """``add`` writes a row, and gives back how it was told."""
        self._shared = shared
        self._plan = plan
        self._number = number
        self._add = add
        self.spool = Spool()
        self._taken = 0

    def note_taken(self, source: Metadata) -> None:
        """The source has one more object that filters take. Folders alone are nothing to copy."""
        self._taken += not is_marker(source)

    def note(self, decision: Decision) -> None:
        """An object is to be deleted."""
        self.spool.add(decision)

    def refuse_empty(self) -> None:
        """Raise where the source has nothing, and all of the target would go."""
        options, count = self._shared.options, self.spool.count
        if options.delete and not self._taken and not options.delete_all and count:
            trees = self._plan.trees
            raise InvalidInput(
                f"{trees.source.location()} has nothing to copy, so {count_of(count, 'object')} of "
                f"{trees.target.location()} would be deleted: all of them",
                hint="Nothing was deleted. If that is meant, say --delete-all.",
            )

    def list_again(self) -> None:
        """Note what is to be deleted from both trees as they are now: an earlier process took what
        it had noted with it."""
        self.spool.close()
        self.spool, self._taken = Spool(), 0
        plan = replace(self._plan, tell=lambda path, kind: None)
        plan.seen.target_objects = 0
        decide, missing = plan.decider(), untold_of(self._shared, self._number)
        for pair in plan.pairs():
            if pair.target is not None:
                missing.pop(pair.path, None)
            decision = decide(pair)
            if pair.source is not None and decision is not None:
                self.note_taken(pair.source)
            if decision is not None and decision.step == "delete":
                self.spool.add(decision)
        trees = self._plan.trees
        tell_deleted(self._shared, trees, self._number, missing, trees.source)
        self.refuse_empty()

    def delete(self, *, withheld: str) -> None:
        """Delete what was noted; with a reason to withhold it, only tell what would have gone."""
        options, trees = self._shared.options, self._plan.trees
        if withheld or options.dry_run:
            for decision in self.spool:
                if (self._number, decision.path) not in self._shared.known:
                    self._add(predicted_row(decision, withheld))
            return
        delete_all(
            trees.target,
            iter(self.spool),
            options.concurrent,
            DeleteRows(self._shared, self._number, self._add),
            self._shared.stopping.is_set,
            None if trees.backup is None else Backup(trees.target, trees.backup),
            trees.source,
        )

    def close(self) -> None:
        self.spool.close()
