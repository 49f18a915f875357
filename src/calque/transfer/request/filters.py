"""What of a tree is taken: rules on names, and limits on size, age and class.

The first rule that matches a path decides; a path that no rule matches is taken. Filters hold for
both sides: what is excluded is neither copied nor deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from calque.errors import InvalidInput
from calque.transfer.request.globs import Glob
from calque.values import Metadata

Action = Literal["include", "exclude"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern, and what becomes of the paths it matches."""

    action: Action
    glob: Glob

    @classmethod
    def include(cls, pattern: str) -> Rule:
        return cls("include", Glob(pattern))

    @classmethod
    def exclude(cls, pattern: str) -> Rule:
        return cls("exclude", Glob(pattern))


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """All filters of a request. Without any, everything is taken."""

    rules: tuple[Rule, ...] = ()
    min_size: int | None = None
    max_size: int | None = None
    newer_than: datetime | None = None
    """Taken is what was modified after this moment."""
    older_than: datetime | None = None
    """Taken is what was modified before this moment."""
    storage_classes: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for size in (self.min_size, self.max_size):
            if size is not None and size < 0:
                raise InvalidInput(f"a size cannot be negative: {size}")
        if self.max_size is not None and (self.min_size or 0) > self.max_size:
            raise InvalidInput(
                f"no object has at least {self.min_size} and at most {self.max_size} bytes"
            )
        for moment in (self.newer_than, self.older_than):
            if moment is not None and moment.tzinfo is None:
                raise InvalidInput(f"the moment {moment} needs a time zone")

    def takes_path(self, path: str) -> bool:
        """Whether the rules take a path below the root of the tree."""
        for rule in self.rules:
            if rule.glob.matches(path):
                return rule.action == "include"
        return True

    def takes_entry(self, entry: Metadata) -> bool:
        """Whether the limits take an object by what its listing says; what is unknown passes."""
        if self.min_size is not None and entry.size < self.min_size:
            return False
        if self.max_size is not None and entry.size > self.max_size:
            return False
        if self.storage_classes and (entry.storage_class or "STANDARD") not in self.storage_classes:
            return False
        changed = entry.last_modified
        if changed is None:
            return True
        if self.newer_than is not None and changed <= self.newer_than:
            return False
        return self.older_than is None or changed < self.older_than

    def takes(self, path: str, entry: Metadata) -> bool:
        """Whether rules and limits take an object."""
        return self.takes_path(path) and self.takes_entry(entry)

    def prunes(self, folder: str) -> bool:
        """Whether nothing below a folder (its path ends in ``/``) can be taken by the rules."""
        for rule in self.rules:
            if rule.action == "exclude":
                if rule.glob.covers(folder):
                    return True
            elif rule.glob.may_match_below(folder):
                return False
        return False

    @property
    def prefixes(self) -> tuple[str, ...]:
        """The prefixes that all paths taken lie under, none within another; ``("",)`` is no bound.

        Only includes from the root narrow, and only where all else is excluded.
        """
        found: set[str] = set()
        for rule in self.rules:
            if rule.action == "include":
                found.add(rule.glob.prefix)
            elif rule.glob.is_everything:
                return tuple(sorted(_without_inner(found)))
        return ("",)

    @property
    def are_none(self) -> bool:
        return self == Filters()

    def to_json(self) -> dict[str, Any]:
        """Plain values that :meth:`from_json` reads back; empty without filters."""
        told: dict[str, Any] = {}
        if self.rules:
            told["rules"] = [[rule.action, rule.glob.text] for rule in self.rules]
        for name in ("min_size", "max_size"):
            if getattr(self, name) is not None:
                told[name] = getattr(self, name)
        for name in ("newer_than", "older_than"):
            if getattr(self, name) is not None:
                told[name] = getattr(self, name).isoformat()
        if self.storage_classes:
            told["storage_classes"] = sorted(self.storage_classes)
        return told

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Filters:
        moments = {
            name: datetime.fromisoformat(told[name])
            for name in ("newer_than", "older_than")
            if name in told
        }
        return cls(
            rules=tuple(Rule(action, Glob(text)) for action, text in told.get("rules", ())),
            min_size=told.get("min_size"),
            max_size=told.get("max_size"),
            storage_classes=frozenset(told.get("storage_classes", ())),
            **moments,
        )


def _without_inner(prefixes: Iterable[str]) -> list[str]:
    kept: list[str] = []
    for prefix in sorted(prefixes):
        if not kept or not prefix.startswith(kept[-1]):
            kept.append(prefix)
    return kept


NO_FILTERS = Filters()
