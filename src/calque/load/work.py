"""The seam between planning a load and running it: what is to be read, how, and into what.

Everything here is frozen, pickles and is made without I/O. The planner fills a :class:`WritePlan`;
an :class:`Engine` (plain processes or Spark) turns it into ``TaskResult`` values; the protocol
commits those. An engine writes data files and nothing else: no ledger, no log.
``calque.load.engines.engine_for(spark=…, bytes=…, transforms=…)`` chooses one.

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Literal, Protocol, get_args

import pyarrow as pa

from calque.errors import InvalidInput
from calque.load.field_path import FieldPath
from calque.load.manifest import StagedFile, TaskResult
from calque.values import MIB

Compression = Literal["auto", "none", "gzip", "zstd", "bz2", "xz"]
"""``auto``: by extension; always checked by magic bytes, and refused where they disagree."""

EscapeStyle = Literal["literal", "mysql", "postgresql", "hive"]
"""What an escape means before a letter; see ``formats/escapes.py``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvFormat:
    """Delimited text (CSV, TSV). Names in comments are the options' spelling in COPY INTO."""

    compression: Compression = "auto"
    field_delimiter: str = ","  # FIELD_DELIMITER, of one or more characters
    record_delimiter: str = "auto"  # RECORD_DELIMITER; auto: \n, \r\n or \r
    quote: str | None = '"'  # FIELD_OPTIONALLY_ENCLOSED_BY / QUOTE
    escape: str | None = None  # ESCAPE, inside and outside of quotes; None: doubled quotes
    escape_style: EscapeStyle = "literal"  # ESCAPE_STYLE
    skip_header: int = 0  # SKIP_HEADER, lines
    parse_header: bool = False  # PARSE_HEADER / header: the first line after the skipped is names
    null_if: tuple[str, ...] = ()  # NULL_IF, unquoted spellings of NULL
    quoted_nulls: bool = False  # a quoted null marker is NULL too
    empty_field_as_null: bool = False  # EMPTY_FIELD_AS_NULL; the empty string is itself by default
    trim_space: bool = False  # TRIM_SPACE
    comment: str | None = None  # lines that begin with it are passed over
    skip_blank_lines: bool = True  # SKIP_BLANK_LINES
    encoding: str = "utf-8"  # ENCODING
    replace_invalid_characters: bool = False  # REPLACE_INVALID_CHARACTERS
    error_on_column_count_mismatch: bool = True  # ERROR_ON_COLUMN_COUNT_MISMATCH
    date_format: str | None = None  # DATE_FORMAT, strptime spelling; None: ISO 8601
    timestamp_format: str | None = None  # TIMESTAMP_FORMAT, strptime spelling; None: ISO 8601
    time_zone: str | None = None  # of timestamps that name none; None: refused for tz types
    true_values: tuple[str, ...] = ("true", "TRUE", "True", "1")
    false_values: tuple[str, ...] = ("false", "FALSE", "False", "0")
    decimal_point: str = "."
    thousands_separator: str | None = None  # THOUSANDS_SEPARATOR, between groups of three digits
    kind: Literal["csv"] = "csv"

    def __post_init__(self) -> None:
        if not self.field_delimiter:
            raise InvalidInput("FIELD_DELIMITER cannot be empty")
        if self.field_delimiter == self.record_delimiter:
            raise InvalidInput("FIELD_DELIMITER and RECORD_DELIMITER cannot be the same")
        if self.quote is not None and len(self.quote) != 1:
            raise InvalidInput(f"a quote is one character, not {self.quote!r}")
        if self.escape is not None and len(self.escape) != 1:
            raise InvalidInput(f"an escape is one character, not {self.escape!r}")
        if self.escape is not None and self.escape in (self.field_delimiter, self.record_delimiter):
            raise InvalidInput("ESCAPE cannot be a delimiter")
        if self.escape_style not in get_args(EscapeStyle):
            raise InvalidInput(
                f"ESCAPE_STYLE is one of {', '.join(get_args(EscapeStyle))}, "
                f"not {self.escape_style!r}"
            )
        self._check_numbers()
        if self.skip_header < 0:
            raise InvalidInput("SKIP_HEADER cannot be negative")

    def _check_numbers(self) -> None:
        marks = [
            self.decimal_point,
            *([self.thousands_separator] if self.thousands_separator else []),
        ]
        if any(len(mark) != 1 or mark.isalnum() or mark in "+-" for mark in marks):
            raise InvalidInput(
                "DECIMAL_POINT and THOUSANDS_SEPARATOR are one character each, such as , and ."
            )
        if len(set(marks)) < len(marks):
            raise InvalidInput("DECIMAL_POINT and THOUSANDS_SEPARATOR cannot be the same")


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonFormat:
    """NDJSON; with ``strip_outer_array`` one JSON array of objects a file."""

    compression: Compression = "auto"
    strip_outer_array: bool = False  # STRIP_OUTER_ARRAY
    null_if: tuple[str, ...] = ()  # NULL_IF
    strip_null_values: bool = False  # STRIP_NULL_VALUES
    missing_field: Literal["null", "error"] = "null"  # MISSING_FIELD_AS
    date_format: str | None = None
    timestamp_format: str | None = None
    time_zone: str | None = None  # of timestamps that name none; None: refused for tz types
    kind: Literal["json"] = "json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetFormat:
    """Parquet. A file whose schema fits the table already is copied, not decoded."""

    missing_field: Literal["null", "error"] = "error"  # MISSING_FIELD_AS
    copy_if_fits: bool = True
    time_zone: str | None = None  # of timestamps without one, for columns with one
    kind: Literal["parquet"] = "parquet"


@dataclass(frozen=True, slots=True, kw_only=True)
class OrcFormat:
    missing_field: Literal["null", "error"] = "error"
    time_zone: str | None = None
    kind: Literal["orc"] = "orc"


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroFormat:
    missing_field: Literal["null", "error"] = "error"
    time_zone: str | None = None
    kind: Literal["avro"] = "avro"


@dataclass(frozen=True, slots=True, kw_only=True)
class XmlFormat:
    """XML; every ``row_tag`` element is a row, attributes are columns with a prefix."""

    compression: Compression = "auto"
    row_tag: str = "row"  # ROW_TAG
    attribute_prefix: str = "_"
    date_format: str | None = None
    timestamp_format: str | None = None
    time_zone: str | None = None
    kind: Literal["xml"] = "xml"


FormatOptions = CsvFormat | JsonFormat | ParquetFormat | OrcFormat | AvroFormat | XmlFormat


class ErrorMode(StrEnum):
    """ON_ERROR without its number."""

    ABORT = "ABORT"
    CONTINUE = "CONTINUE"
    SKIP_FILE = "SKIP_FILE"


@dataclass(frozen=True, slots=True)
class ErrorPolicy:
    """ON_ERROR. ``limit``: the errors at which the mode acts; ``percent``: of a file's rows.

    ``ABORT`` gives the whole load up at ``limit`` errors over all files; ``SKIP_FILE`` leaves a
    file out at ``limit`` errors (or ``percent`` of its rows) in it, below that only the bad rows
    are left out; ``CONTINUE`` leaves out bad rows.
    """

    mode: ErrorMode = ErrorMode.ABORT
    limit: int = 1
    percent: float | None = None

    def __post_init__(self) -> None:
        if self.limit < 1:
            raise InvalidInput("the number in ON_ERROR must be at least 1")
        if self.percent is not None and not 0 <= self.percent <= 100:
            raise InvalidInput("the percentage in ON_ERROR must lie between 0 and 100")

    def __str__(self) -> str:
        if self.mode is ErrorMode.CONTINUE:
            return "CONTINUE"
        if self.percent is not None:
            return f"SKIP_FILE_{format(Decimal(repr(self.percent)).normalize(), 'f')}%"
        if self.limit > 1:
            return f"{self.mode}_{self.limit}"
        return "ABORT_STATEMENT" if self.mode is ErrorMode.ABORT else "SKIP_FILE"


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
