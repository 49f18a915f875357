"""A whole request: which trees go where, and how. What a job keeps of it, and how it comes back."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from calque.config import remote_secrets
from calque.errors import InvalidInput
from calque.operator.registry import secrets_of
from calque.operator.service import HasService
from calque.operator.uri import scheme_of, text_of
from calque.transfer.request.options import Kind, TreeOptions

Given = str | os.PathLike[str] | HasService
"""A tree as it is asked for: a URI, a path, or an operator (all below its root)."""
_MOMENTS = ("newer_than", "older_than")


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeRequest:
    """Which trees go where, and how; made by the command line, by functions and by a resume."""

    kind: Kind
    sources: Sequence[Given]
    target: Given
    options: TreeOptions = field(default_factory=TreeOptions)
    source_options: Mapping[str, object] = field(default_factory=dict, repr=False)
    target_options: Mapping[str, object] = field(default_factory=dict, repr=False)
    report: str | None = None
    """The file that gets a row for each object."""
    remotes: tuple[str | None, str | None] = (None, None)
    """The named remotes that the sources, and the target, are of: a job keeps no secret, so whoever
    goes on with it looks there for those that the options had."""

    def __post_init__(self) -> None:
        if not self.sources:
            raise InvalidInput("there is no source: name at least one")

    def to_json(self) -> dict[str, Any]:
        """What a job keeps: no secret. ``pace`` may be another when it is resumed."""
        options = self.options.to_json()
        if options["backup_to"] is not None:
            options["backup_to"] = _located(options["backup_to"], os.getcwd())
        return {
            "kind": self.kind,
            "sources": [_text(each) for each in self.sources],
            "target": _text(self.target),
            "options": options,
            "pace": self.options.pace(),
            "report": None if self.report is None else os.path.abspath(self.report),
            "source_options": _without_secrets(self.sources[0], self.source_options),
            "target_options": _without_secrets(self.target, self.target_options),
            "remotes": list(self.remotes),
            "folder": os.getcwd(),
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> TreeRequest:
        """The request of a job; credentials are found where this runs."""
        folder = told["folder"]
        sources = [_located(each, folder) for each in told["sources"]]
        target = _located(told["target"], folder)
        remotes = tuple(told.get("remotes", (None, None)))
        return cls(
            kind=told["kind"],
            sources=sources,
            target=target,
            options=TreeOptions.from_json(told["options"], told["pace"]),
            source_options={**told["source_options"], **_secrets(remotes[0], sources[0])},
            target_options={**told["target_options"], **_secrets(remotes[1], target)},
            report=told["report"],
            remotes=remotes,
        )


def differences(one: Mapping[str, Any], two: Mapping[str, Any]) -> list[str]:
    """The names of what makes two requests different ones, in order; pace does not.

    ``--newer-than 7d`` is another moment in each run of the same command: only whether there is
    one counts.
    """
    names = [
        name
        for name in ("kind", "report", "source_options", "target_options")
        if one[name] != two[name]
    ]
    ours, theirs = _comparable(one["options"]), _comparable(two["options"])
    names += [name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name)]
    return sorted(name.replace("_", "-") for name in names)


def _comparable(options: Mapping[str, Any]) -> dict[str, Any]:
    filters = {name: name in _MOMENTS or value for name, value in dict(options["filters"]).items()}
    return {**options, "filters": filters}


def _text(given: Given) -> str:
    return given.service.location("") if isinstance(given, HasService) else text_of(given)


def _located(text: str, folder: str) -> str:
    """A relative path is one from where the command was called."""
    if "://" in text or os.path.isabs(text):
        return text
    return os.path.join(folder, text)


def _secrets(remote: str | None, location: str) -> dict[str, str]:
    return {} if remote is None else remote_secrets(remote, secrets_of(scheme_of(location)))


def _without_secrets(given: Given, options: Mapping[str, object]) -> dict[str, object]:
    secrets = secrets_of(scheme_of(_text(given)))
    return {name: value for name, value in options.items() if name not in secrets}
