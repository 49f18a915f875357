"""What a load brings: its sources, its results, and all that is needed to commit it."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from calque.values import SourceIdentity


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """A source whose rows are in the load: what its record and the table's sidecar hold."""

    identity: SourceIdentity
    rows: int
    errors: int
    content_hash: str | None
    verified_at: int
    parts: tuple[tuple[str, int, int], ...] = ()
    """(data file, first row, rows)."""
    about: Mapping[str, Any] | None = None
    """What the listing or a look told besides the identity: content type, user metadata …"""

    def to_json(self) -> dict[str, Any]:
        return {
            "identity": self.identity.to_json(),
            "rows": self.rows,
            "errors": self.errors,
            "content_hash": self.content_hash,
            "verified_at": self.verified_at,
            "parts": [list(part) for part in self.parts],
            **({"about": dict(self.about)} if self.about else {}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LoadedFile:
        return cls(
            SourceIdentity.from_json(data["identity"]),
            data["rows"],
            data["errors"],
            data["content_hash"],
            data["verified_at"],
            tuple((path, first, rows) for path, first, rows in data["parts"]),
            data.get("about"),
        )


@dataclass(frozen=True, slots=True)
class FileResult:
    """The result row of one file in one load."""

    location: str
    name: str
    status: str
    rows_parsed: int = 0
    rows_loaded: int = 0
    errors: int = 0
    first_error: str | None = None
    bytes: int = 0
    seconds: float = 0.0
    message: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Its fields by name: ``asdict`` without its copies, since there may be millions."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """All that is needed to commit and to finalise a load, by anyone."""

    actions: tuple[Mapping[str, Any], ...] = ()
    """What is committed to the table, in the words of its adapter."""
    sources: tuple[LoadedFile, ...] = ()
    results: tuple[FileResult, ...] = ()
    errors: Mapping[str, bytes] = field(default_factory=dict)
    """The rejected rows of each file, packed. They go to a table of their own when the load is
    prepared, and are not part of what is stored to commit it."""
    moved: Mapping[str, tuple[tuple[str, int, int], ...]] = field(default_factory=dict)
    """Rows of other sources that stand elsewhere now, since their data file was rewritten."""
    purge: bool = False
    archive: str | None = None
    """Where sources are moved; with it ``purge`` is a move."""
    truncate: bool = False
    last: bool = True
    label: str | None = None
    forced: bool = False
    """Rows of a file that another ledger's load brought meanwhile are no reason to give it up."""

    def encode(self) -> bytes:
        return zlib.compress(
            json.dumps(
                {
                    "actions": [dict(action) for action in self.actions],
                    "sources": [source.to_json() for source in self.sources],
                    "results": [result.to_json() for result in self.results],
                    "moved": {place: list(parts) for place, parts in self.moved.items()},
                    "purge": self.purge,
                    "archive": self.archive,
                    "truncate": self.truncate,
                    "last": self.last,
                    "label": self.label,
                    "forced": self.forced,
                },
                separators=(",", ":"),
            ).encode(),
            1,
        )

    @classmethod
    def decode(cls, data: bytes) -> Manifest:
        plain = json.loads(zlib.decompress(data))
        return cls(
            actions=tuple(plain["actions"]),
            sources=tuple(LoadedFile.from_json(source) for source in plain["sources"]),
            results=tuple(FileResult(**result) for result in plain["results"]),
            moved={
                place: tuple((path, first, rows) for path, first, rows in parts)
                for place, parts in plain["moved"].items()
            },
            purge=plain["purge"],
            archive=plain.get("archive"),  # absent in what an older calque prepared
            truncate=plain["truncate"],
            last=plain["last"],
            label=plain["label"],
            forced=plain.get("forced", False),
        )
