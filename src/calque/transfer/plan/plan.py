"""What is to be done with each path of two trees: computed from their listings, nothing written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain

from calque.errors import CalqueError, NotFound
from calque.transfer.model import EVERYTHING, Collision, Decision, KeyRange, Pair, Twin
from calque.transfer.plan.copied_before import Remembered
from calque.transfer.plan.join import join
from calque.transfer.plan.rules import Comparison
from calque.transfer.plan.side import Side, Tell, in_key_order, is_marker
from calque.transfer.plan.unholdable_paths import Fitness
from calque.transfer.request.filters import Filters
from calque.transfer.request.options import TreeOptions
from calque.values import Metadata


@dataclass(frozen=True, slots=True)
class Trees:
    """A source and its target, and what of them is taken."""

    source: Side
    target: Side
    filters: Filters
    """What the user takes of both sides."""
    chosen: Filters | None = None
    """What a pattern in the source's own name leaves of both."""
    backup: Side | None = None
    """What gets objects that the target loses."""
    named: bool = False
    """Whether the source is a folder that keeps its name, and so goes with what is moved out."""
    label: str = ""
    """What rows of it are called by, before their paths, where a run has several sources."""

    @property
    def listed(self) -> Filters:
        """By what the listings are narrowed; the other one is asked for each path."""
        return self.chosen or self.filters

    @property
    def single(self) -> str:
        """The name of the one object that is all of the source; empty where it is a tree."""
        only = self.source.only
        return only[0] if only is not None and len(only) == 1 else ""

    @property
    def shown(self) -> str:
        """The source as people are told of it."""
        return self.source.location(self.single)

    def takes_path(self, path: str) -> bool:
        """Whether a listed path is taken by the filters that the listing did not know."""
        return self.chosen is None or self.filters.takes_path(path)

    @property
    def can_be_cut(self) -> bool:
        """Whether both sides can begin their listing at any key."""
        both = (self.source, self.target)
        return all(side.order == "key" and side.only is None for side in both)


@dataclass(slots=True)
class Seen:
    """What a listing has brought so far; whether there was anything before filters."""

    anything: bool = False
    target_objects: int = 0
    filtered: int = 0

    def note(self) -> None:
        self.anything = True


@dataclass(frozen=True, slots=True)
class Plan:
    """Decisions for the paths of two trees, made as they are asked for."""

    trees: Trees
    options: TreeOptions
    remembered: Remembered | None = None
    tell: Tell = lambda path, kind: None
    seen: Seen = field(default_factory=Seen)
    collides: Callable[[str], Collision | None] = lambda path: None
    """How a path would fall together with another at the target; None where it does not."""
    is_given: Callable[[str], bool] = lambda path: False
    """Whether a path of the target is one that was given to a path that falls together."""
    twin: Callable[[str], Twin | None] = lambda path: None
    """What the target has of a new path's bytes, under a name that is to go."""
    may_be_gone: bool = False
    """Whether an earlier process may have moved all of the source away."""
    passed_over: str = ""
    """How names begin that we put into either tree for a moment ourselves."""

    def pairs(self, span: KeyRange = EVERYTHING) -> Iterator[Pair]:
        """Both sides of a range, joined in the order of keys.

        The source is asked first: if it cannot be listed the target is not looked at.
        """
        trees = self.trees
        source = in_key_order(
            trees.source,
            trees.source.entries(trees.listed, span, tell=self.tell, seen=self.seen.note),
        )
        first = next(source, None)
        if first is None and span.is_everything and not self.seen.anything:
            self._refuse_missing()
        target = in_key_order(trees.target, self._target_entries(span))
        pairs = join(source if first is None else chain((first,), source), target)
        if not self.passed_over:
            return pairs
        return (pair for pair in pairs if not pair.path.startswith(self.passed_over))

    def _refuse_missing(self) -> None:
        source = self.trees.source
        if source.only is None and not source.exists():
            if self.may_be_gone and self.trees.target.exists():
                return
            raise NotFound(
                f"{source.location()} does not exist: there is no folder and no object below it",
                hint="Nothing was written. An object service knows no empty folders.",
            )

    def _target_entries(self, span: KeyRange) -> Iterator[tuple[str, Metadata]]:
        filters = self.trees.listed
        if self.options.delete_excluded:
            filters = self.trees.chosen or Filters()
        for path, entry in self.trees.target.entries(filters, span):
            self.seen.target_objects += 1
            yield path, entry

    def decider(self) -> Callable[[Pair], Decision | None]:
        """A function that decides pairs, which must come in the order of keys."""
        trees, options = self.trees, self.options
        comparison = Comparison(
            options.compare, trees.source, trees.target, self.remembered, options.download
        )
        fitness = Fitness(trees.target)
        limits, clears = trees.filters.takes_entry, options.delete_excluded

        def decide(pair: Pair) -> Decision | None:
            source = pair.source
            is_taken = source is not None and limits(source) and trees.takes_path(pair.path)
            objection = fitness.objection(pair, is_taken=is_taken)
            if not trees.takes_path(pair.path) and not (clears and source is None):
                return None
            if source is None:
                target = pair.target
                if not options.delete or target is None or not limits(target):
                    return None
                if self.is_given(pair.path):
                    return None  # it belongs to the path that it was given to
                if is_marker(target) and trees.source.has_folder(pair.path):
                    return None  # it stands for a folder that is there
                if trees.filters.takes_path(pair.path) and trees.source.has_other(pair.path):
                    return None  # skipped, and told as such: a link may lead somewhere tomorrow
                return Decision(pair, "delete", "only at the target")
            if not is_taken:
                self.seen.filtered += 1
                return None
            collision = self.collides(pair.path)
            if collision is not None and collision.name is None:
                objection = objection or collision.why
            if objection is not None:
                return Decision(pair, "refuse", "unfit", objection)
            if collision is not None:
                pair = self._under_name(pair, collision)
            try:
                decided = comparison.decide(pair)
            except CalqueError as error:
                # A file that cannot be read, an object without a checksum: the others are compared.
                return Decision(pair, "refuse", "checksum", error.message, error)
            if collision is not None:
                decided = replace(decided, why=collision.why)
            if decided.step == "copy" and pair.target is not None and options.if_not_exists:
                return replace(decided, step="refuse", why="the target exists and differs")
            return self._with_twin(decided) if decided.rule == "new" else decided

        return decide

    def _under_name(self, pair: Pair, collision: Collision) -> Pair:
        """The pair with what stands under the name that its path was given at the target."""
        assert collision.name is not None
        target = self.trees.target
        try:
            found = target.service.stat(target.key(collision.name))
        except NotFound:
            found = None
        return replace(pair, target=found, into=collision.name)

    def _with_twin(self, decided: Decision) -> Decision:
        twin = self.twin(decided.path)
        if twin is None:
            return decided
        return replace(decided, rule="renamed", why=twin.why, twin=twin.entry)
