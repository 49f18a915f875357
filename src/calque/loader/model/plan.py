"""The seam between planning a load and running it: what is to be read, how, and into what.

Everything here is frozen, pickles and is made without I/O. The planner fills a :class:`WritePlan`;
an :class:`Engine` (plain processes or Spark) turns it into ``TaskResult`` values; the protocol
commits those. An engine writes data files and nothing else: no ledger, no log.
``calque.loader.run.engines.choose_engine(spark=…, bytes=…, transforms=…)`` chooses one.

What an engine promises:

- every staged file of the plan has exactly one :class:`FileOutcome` over all results, however the
  file was cut into pieces;
- bytes are read pinned (``if_match=identity.pin``, and the version) where the service can; a source
  that moved is CHANGED, one that vanished is FAILED, and neither has a row in any data file;
- only files named in the results count. Names follow :meth:`WritePlan.data_file_name`, so attempts
  never overwrite each other and what losers leave can be told by the load id;
- the abort policies (``ABORT_*``) may stop a task early; the caller gives up the whole load.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, Protocol

from calque.loader.model.error_policy import ErrorPolicy
from calque.loader.model.field_path import FieldPath
from calque.loader.model.file_formats import FormatOptions
from calque.loader.model.outcome import TaskResult
from calque.loader.model.staged_file import StagedFile
from calque.values import MIB

if TYPE_CHECKING:
    import pyarrow as pa


class MetadataKind(StrEnum):
    """What a metadata column holds of the staged file a row came from."""

    FILE = "file"  # METADATA$FILENAME, _metadata.file_path: the full location
    NAME = "name"  # _metadata.file_name: the part after the stage's path
    ROW_NUMBER = "row_number"  # METADATA$FILE_ROW_NUMBER, from 1
    LAST_MODIFIED = "last_modified"  # METADATA$FILE_LAST_MODIFIED
    ETAG = "etag"  # METADATA$FILE_CONTENT_KEY
    SIZE = "size"  # _metadata.file_size
    LOAD_ID = "load_id"
    LOAD_TIME = "load_time"  # METADATA$START_SCAN_TIME


@dataclass(frozen=True, slots=True)
class MetadataColumn:
    """A column of the target that is filled from the file and not from its contents."""

    column: str
    kind: MetadataKind


@dataclass(frozen=True, slots=True)
class Transformation:
    """``SELECT …`` over the staged rows, as Spark SQL: one expression for each target column.

    In the expressions ``$1`` and paths such as ``$1:a.b`` are names in backquotes; file columns
    keep their names; metadata columns are ``_metadata_<kind>`` (``_metadata_file`` …).
    """

    expressions: tuple[str, ...]
    columns: tuple[str, ...]
    """The target columns the expressions fill, in order."""
    where: str | None = None
    paths: tuple[FieldPath, ...] = ()
    """Every path that the expressions name."""


ColumnMatch = Literal["position", "name", "name_insensitive"]
"""MATCH_BY_COLUMN_NAME: NONE, CASE_SENSITIVE, CASE_INSENSITIVE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetSchema:
    """The table as the writer sees it.

    Iceberg field ids are in the fields' metadata (``PARQUET:field_id``), nested fields too, which
    pyarrow writes into the Parquet file.
    """

    schema: pa.Schema
    partition_columns: tuple[str, ...] = ()
    read_by_name: bool = True
    """A Parquet file without field ids is read right (Delta; Iceberg with a name mapping)."""
    partitions_in_file: bool = False
    """Partition columns are kept in the data files too (Iceberg); Delta leaves them out."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A staged file, or a range of one whose format can be cut."""

    file: StagedFile
    offset: int = 0
    length: int | None = None
    begin: int | None = None
    """Where its first record begins; None: behind the first line that ends in it."""

    @property
    def bytes(self) -> int:
        return self.file.identity.size - self.offset if self.length is None else self.length


@dataclass(frozen=True, slots=True)
class WriteTask:
    """What one task reads: many small files, one big one, or a part of it."""

    number: int
    pieces: tuple[Piece, ...]

    @property
    def bytes(self) -> int:
        return sum(piece.bytes for piece in self.pieces)


@dataclass(frozen=True, slots=True, kw_only=True)
class WritePlan:
    """One load, ready to be written: nothing has been touched yet."""

    load_id: str
    root: str
    """Location of the table's root, for :meth:`Operator.locate`."""
    root_options: Mapping[str, object] = field(default_factory=dict)
    """What it needs besides that location (no secrets)."""
    data_prefix: str = ""
    """Where data files live under the root (``data/`` for Iceberg)."""
    source_options: Mapping[str, object] = field(default_factory=dict)
    """What :meth:`Operator.locate` needs besides the location of a staged file (no secrets)."""
    tasks: tuple[WriteTask, ...]
    format: FormatOptions
    target: TargetSchema
    on_error: ErrorPolicy = field(default_factory=ErrorPolicy)
    match: ColumnMatch = "position"
    columns: tuple[str, ...] = ()
    """The column list of the statement: target columns in file order; empty: all of the table."""
    transformation: Transformation | None = None
    metadata_columns: tuple[MetadataColumn, ...] = ()
    rescue_column: str | None = None
    """Values that fit no column's type go here as JSON instead of being errors."""
    validate_only: bool = False
    """VALIDATION_MODE: parse and cast everything, write nothing, return outcomes alone."""
    target_file_bytes: int = 256 * MIB
    keep_errors: int = 1000
    """Row errors kept for each file; the counts are always true."""

    @property
    def files(self) -> Iterator[StagedFile]:
        """Every staged file once, whatever number of pieces it was cut into."""
        seen: set[str] = set()
        for task in self.tasks:
            for piece in task.pieces:
                if piece.file.location not in seen:
                    seen.add(piece.file.location)
                    yield piece.file

    @property
    def bytes(self) -> int:
        return sum(task.bytes for task in self.tasks)

    def narrow(self, load_id: str, locations: Collection[str]) -> WritePlan:
        """What is left of the plan for a load that was granted these of its files."""
        granted = (
            WriteTask(task.number, tuple(p for p in task.pieces if p.file.location in locations))
            for task in self.tasks
        )
        return replace(self, load_id=load_id, tasks=tuple(task for task in granted if task.pieces))

    def data_file_name(self, task: int, attempt: str, number: int) -> str:
        """The name of a data file; ``attempt`` is unique among all attempts at the task.

        See :func:`is_data_file_of`.
        """
        return f"{self.load_id}-{task:05d}-{attempt}-{number:05d}.parquet"


def is_data_file_of(load_id: str, name: str) -> bool:
    """Whether a file has a name that this load gives, and no other: ids may begin alike."""
    return name.startswith(f"{load_id}-") and _OWN.fullmatch(name, len(load_id)) is not None


_OWN = re.compile(r"-(?:\d{5,}-[^-]+-\d{5,}|(?:kept|cut)-\d{5,})\.parquet")
"""What follows the load's id: task, attempt and number, or a rewritten file (``load.replace``)."""


@dataclass(frozen=True, slots=True)
class Advance:
    """How far a plan has come: staged files read to their end, rows and bytes of them."""

    files: int = 0
    rows: int = 0
    bytes: int = 0

    def __add__(self, other: Advance) -> Advance:
        return Advance(self.files + other.files, self.rows + other.rows, self.bytes + other.bytes)


OnAdvance = Callable[[Advance], None]
"""Told now and then, while a plan runs, how far it has come in all; in the caller's thread."""


class Engine(Protocol):
    """Where plans run: plain local processes, or Spark."""

    @property
    def name(self) -> str:
        """``local`` or ``spark``, for reports."""

    def run(self, plan: WritePlan, advance: OnAdvance | None = None) -> Iterator[TaskResult]:
        """Write the plan's data files; results of winning attempts as they come in.

        Closing the iterator early stops the tasks that are still running.
        """

    def infer(
        self,
        files: Sequence[StagedFile],
        format: FormatOptions,
        source_options: Mapping[str, object] | None = None,
        *,
        skip_bad: bool = False,
        transformation: Transformation | None = None,
    ) -> pa.Schema:
        """The schema that holds the rows of all these files; every column nullable.

        With a ``transformation``: that of the rows it makes, by the names of its columns.

        ``source_options`` as in :attr:`WritePlan.source_options`; ``skip_bad``: files that cannot
        be read are passed over, as long as one can.
        """

    def sample(self, plan: WritePlan, rows: int) -> pa.Table:
        """The first rows that would be loaded, cast to the target; writes nothing."""

    def close(self) -> None: ...
