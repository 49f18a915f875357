"""The values between the steps of a transfer; none of them does anything."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any, Literal, NewType

from calque.errors import CalqueError
from calque.values import Metadata

Order = Literal["key", "folder", "none"]
"""How a side lists: by the bytes of whole keys, folder by folder (by the names between slashes), or
in no order that can be relied on."""

Step = Literal["copy", "keep", "skip", "refuse", "delete"]
"""What a plan wants done with a pair: copied, left as it is up to date, not touched for a reason
that is told, refused as an error of its own, or deleted at the target."""

Outcome = Literal["copied", "up to date", "skipped", "changed", "failed", "deleted", "kept"]
"""What became of an object. ``changed``: its source did not hold still and nothing was copied;
``kept``: it would have been deleted, and was not, for the reason told."""

OUTCOMES: tuple[Outcome, ...] = (
    "copied",
    "up to date",
    "skipped",
    "changed",
    "failed",
    "deleted",
    "kept",
)
PROBLEMS: frozenset[Outcome] = frozenset({"changed", "failed"})

Rule = Literal[
    "new",
    "size",
    "checksum",
    "identity",
    "time",
    "always",
    "never",
    "filter",
    "only at the target",
    "unfit",
    "kind",
    "renamed",
]
"""Which rule spoke: the target has none of that name; sizes differ; checksums of one kind; what we
wrote ourselves is remembered; times; what ``--compare`` says; a filter; the source has none of that
name; no object of that name can be there; what it is (a link, a socket …); the target has the same
bytes under a name that the source has no more."""

JobId = NewType("JobId", str)


def new_job_id() -> JobId:
    """A name for a run: when it began, and some chance."""
    return JobId(f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(4)}")


def sort_key(path: str) -> bytes:
    """By what paths are ordered everywhere in a transfer: their bytes.

    Not by letters: names of files that are no UTF-8 come as lone surrogates, which sort elsewhere.
    """
    return os.fsencode(path) if not path.isascii() else path.encode()


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The keys of ``(after, up_to]``: ``after`` itself is not in it, ``up_to`` is.

    An empty ``after`` is before every key, ``up_to`` None is behind every key.
    """

    after: str = ""
    up_to: str | None = None

    def holds(self, path: str) -> bool:
        """Whether a path lies in the range."""
        key = sort_key(path)
        if self.after and key <= sort_key(self.after):
            return False
        return self.up_to is None or key <= sort_key(self.up_to)

    def meets(self, other: KeyRange) -> bool:
        """Whether a key may lie in both."""
        return _begins_within(self, other) and _begins_within(other, self)

    @property
    def is_everything(self) -> bool:
        return not self.after and self.up_to is None


def _begins_within(one: KeyRange, other: KeyRange) -> bool:
    return other.up_to is None or sort_key(one.after) < sort_key(other.up_to)


EVERYTHING = KeyRange()


@dataclass(frozen=True, slots=True)
class Pair:
    """One path of both trees; at least one side has it.

    ``path`` is below the root of the tree on either side; the entries' own paths are those of their
    operators.
    """

    path: str
    source: Metadata | None
    target: Metadata | None
    into: str | None = None
    """The path at the target, where it is another one."""

    @property
    def target_path(self) -> str:
        return self.path if self.into is None else self.into


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be done with a pair, which rule says so, and why in words where it needs some."""

    pair: Pair
    step: Step
    rule: Rule
    why: str = ""
    error: CalqueError | None = None
    """What kept the pair from being compared."""
    twin: Metadata | None = None
    """An object of the target that has the same bytes, and can be copied there instead."""

    @property
    def path(self) -> str:
        return self.pair.path

    @property
    def size(self) -> int:
        """The bytes that the step is about."""
        known = self.pair.source or self.pair.target
        return 0 if known is None else known.size


@dataclass(frozen=True, slots=True)
class Collision:
    """A path that falls together with another at the target: why in words, and the name that it is
    given there; None where it is refused."""

    why: str
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Twin:
    """An object of the target with the bytes of a new one, under a name that is to go."""

    entry: Metadata
    why: str


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one object. Written after the act; each object of a run has exactly one."""

    path: str
    outcome: Outcome
    rule: Rule
    why: str = ""
    size: int | None = None
    """Bytes of the source; of the target where there is no source."""
    target_size: int | None = None
    """Bytes of the target as it is after the act."""
    source_etag: str | None = None
    target_etag: str | None = None
    checksum: str | None = None
    """``algorithm:base64`` of the whole object, where a service has told it."""
    version: str | None = None
    """The version that was made."""
    route: str | None = None
    """``server-side``, ``through the client`` or ``renamed``; None where no byte moved."""
    seconds: float = 0.0
    error: str | None = None
    """The class of the error (``NotFound`` …); ``why`` has its words."""
    target: str | None = None
    """Where it went, where that is not the same path."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Row:
        return cls(**{name: told[name] for name in ROW_FIELDS if name in told})

    @property
    def is_problem(self) -> bool:
        return self.outcome in PROBLEMS

    def under(self, label: str) -> Row:
        """The row as it is told where a run has several sources, which have a label each."""
        if not label:
            return self
        into = None if self.target is None else label + self.target
        return replace(self, path=label + self.path, target=into)


ROW_FIELDS = tuple(each.name for each in fields(Row))


@dataclass(slots=True)
class Count:
    """Objects and their bytes."""

    objects: int = 0
    bytes: int = 0

    def add(self, size: int | None) -> None:
        self.objects += 1
        self.bytes += size or 0


@dataclass(slots=True)
class Totals:
    """A run in numbers; what rows add up to. Not safe between threads by itself."""

    by_outcome: dict[Outcome, Count] = field(
        default_factory=lambda: {outcome: Count() for outcome in OUTCOMES}
    )
    by_route: dict[str, Count] = field(default_factory=dict)
    by_rule: dict[str, int] = field(default_factory=dict)
    listed: Count = field(default_factory=Count)
    """Of the source, after filters."""
    requests: int = 0
    seconds: float = 0.0

    def add(self, row: Row) -> None:
        """Count a row."""
        self.by_outcome[row.outcome].add(row.size)
        self.by_rule[row.rule] = self.by_rule.get(row.rule, 0) + 1
        if row.route is not None:
            self.by_route.setdefault(row.route, Count()).add(row.size)

    def of(self, outcome: Outcome) -> Count:
        return self.by_outcome[outcome]

    @property
    def problems(self) -> int:
        """Objects that are not as they were asked to be."""
        return sum(self.by_outcome[outcome].objects for outcome in PROBLEMS)

    @property
    def done(self) -> int:
        """Objects that were changed, or found to be right already."""
        return sum(self.by_outcome[name].objects for name in ("copied", "up to date", "deleted"))

    def to_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            outcome.replace(" ", "_"): asdict(count) for outcome, count in self.by_outcome.items()
        }
        routes = {route.replace(" ", "_"): asdict(count) for route, count in self.by_route.items()}
        return {
            **told,
            "routes": routes,
            "rules": dict(self.by_rule),
            "listed": asdict(self.listed),
            "requests": self.requests,
            "seconds": round(self.seconds, 3),
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Totals:
        """What :meth:`to_json` gave; what is missing counts nothing."""
        counts = {name: Count(**told.get(name.replace(" ", "_"), {})) for name in OUTCOMES}
        routes = told.get("routes", {})
        return cls(
            by_outcome=counts,
            by_route={name.replace("_", " "): Count(**each) for name, each in routes.items()},
            by_rule=dict(told.get("rules", {})),
            listed=Count(**told.get("listed", {})),
            requests=told.get("requests", 0),
            seconds=told.get("seconds", 0.0),
        )


Entries = Iterator[tuple[str, Metadata]]
"""What a side lists: paths below its root in the order of :func:`sort_key`, with their entries."""

WHOLE = "whole"
"""The phase of a job while a tree goes as a whole, in one act that nobody may have seen end."""

DELETES = "delete"
"""The phase while a target is cleared of what the source lacks."""
