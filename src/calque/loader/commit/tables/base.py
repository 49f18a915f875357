"""What the protocol needs of a table: a fresh look, a marker, and one compare-and-set commit.

A :class:`Lake` names a table; a :class:`Snapshot` is the table as it was read at one moment, and
``commit`` succeeds only if the table is still that one. Actions are plain JSON mappings, so that a
load can be finished by another process from what the ledger holds:

- ``{"add": path, "size": n, "rows": n, "partition": {…}, "stats": …}``,
- ``{"remove": path}`` for a data file whose rows are replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from calque.ledger import TableKey
from calque.loader.model.data_file import DataFile
from calque.loader.model.plan import TargetSchema
from calque.loader.run.writing.table_root import TableRoot

if TYPE_CHECKING:
    import pyarrow as pa

Action = Mapping[str, Any]


class Mark(StrEnum):
    """What a load's marker in the table's log says."""

    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True)
class Marker:
    """The marker of a load, and the version of the commit that wrote it where it is known."""

    mark: Mark
    version: int | None


@dataclass(frozen=True, slots=True)
class Committed:
    """A load of ours that is in the table's log, whichever ledger it was run with."""

    load_id: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One commit: a marker and what comes with it."""

    load_id: str
    mark: Mark
    actions: tuple[Action, ...] = ()
    truncate: bool = False
    sidecar: str | None = None
    """Path under the root of the file that lists the sources."""
    drop_markers: tuple[str, ...] = ()
    """Loads that are finalised: a table that keeps markers beside its log may drop theirs."""


class Snapshot(Protocol):
    """A table as it was at one version."""

    @property
    def table_id(self) -> str: ...

    @property
    def version(self) -> int:
        """Grows with every commit; a restore does not take it back to a used number."""

    @property
    def target(self) -> TargetSchema: ...

    @property
    def properties(self) -> Mapping[str, str]:
        """What is written down with the table."""

    def refuse_unsupported(self) -> None:
        """Raise Unsupported where a load could break the table, or the table its promise."""

    def count_rows(self) -> int | None:
        """How many rows the table has; None where that is not known without reading them all."""

    def first_rows(self, count: int) -> pa.Table:
        """Some rows, at most so many, in no promised order."""

    def marker(self, load_id: str, base_version: int) -> Marker | None:
        """The load's marker. ``base_version`` is the version at which the load was claimed.

        Raises Unsupported when the table forgot so much of its past that no answer is certain.
        """

    def commits(self, since: int) -> list[Committed] | None:
        """Our committed loads above a version, oldest first, from the new log entries alone.

        None where the log no longer holds every entry above that version.
        """

    def markers(self) -> Sequence[str]:
        """Load ids whose committed markers are kept beside the log and could be dropped."""

    def commit(self, change: Change) -> int:
        """One commit on this very version, and its number; ConditionNotMatch if the table moved.

        Any other error leaves the outcome unknown: look at the marker of a fresh snapshot.
        """

    def find_restores(self, since: int) -> list[tuple[int, int]]:
        """Versions ``(low, high]`` after ``since`` whose commits a restore took back."""

    def live(self, paths: Iterable[str]) -> dict[str, dict[str, str | None]]:
        """Which of these data files the table still reads, with their partition values.

        Raises Unsupported where deleted rows lie over them: their row numbers mean nothing then.
        """

    def evolve(self, schema: pa.Schema) -> None:
        """Commit a schema that adds nullable columns or widens types."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A table that is to be made: everything of it is known, and nobody sees it yet."""

    snapshot: Snapshot
    """The table as it will be at first; nothing can be committed on it."""
    publish: Callable[[], None]
    """Make the table; nothing is done if it, or another of its name, is there already.

    Whose it became is told by the id of the table that is there then.
    """


class Lake(Protocol):
    """A table by name: where it is, whether or not it exists yet."""

    @property
    def kind(self) -> str: ...

    @property
    def display(self) -> str:
        """The name people know it by."""

    @property
    def root(self) -> str:
        """Location of the folder that holds the data files, for an Operator."""

    @property
    def options(self) -> Mapping[str, object]:
        """What opens the table's service besides its location (no secrets)."""

    @property
    def place(self) -> TableRoot:
        """The root, opened."""

    @property
    def data_prefix(self) -> str: ...

    def open(self) -> Snapshot:
        """Read it afresh; NotFound if it is not there, Unsupported if calque cannot fill it."""

    def look(self) -> Snapshot:
        """The same for one who only looks: also a table that could not be loaded."""

    def draft(
        self,
        schema: pa.Schema,
        partition_by: Sequence[str],
        properties: Mapping[str, str] = MappingProxyType({}),
    ) -> Draft:
        """Prepare the table without making it. Until it is published this lake knows its place."""

    def key(self, snapshot: Snapshot | None) -> TableKey:
        """The table's key in the ledger, equal for every spelling of its name; without a snapshot
        that of its place, for whoever looks for what is remembered of it."""

    def encode(self, file: DataFile, target: TargetSchema) -> dict[str, Any]:
        """The action that adds a data file."""
