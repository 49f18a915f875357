"""The request: everything a COPY INTO can ask for, checked when it is made."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from calque.errors import StatementInvalid
from calque.loader.model.error_policy import ErrorMode, ErrorPolicy
from calque.loader.model.file_formats import FormatOptions
from calque.loader.model.plan import ColumnMatch, MetadataColumn, Transformation

if TYPE_CHECKING:
    import pyarrow as pa

OnChanged = Literal["reload", "skip", "error", "replace"]
"""What to do with a file that was loaded and has changed since."""

LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")


@dataclass(frozen=True, slots=True)
class Validation:
    """VALIDATION_MODE: return the errors, or the first ``rows`` rows; load nothing."""

    rows: int | None = None

    def __post_init__(self) -> None:
        if self.rows is not None and self.rows < 1:
            raise StatementInvalid("RETURN_n_ROWS needs a number of at least 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRequest:
    """One COPY INTO, however it was spelled. Frozen, and consistent in itself."""

    stage: str
    into: str
    format: FormatOptions | None = None
    """None: by the extension of the files."""
    said: frozenset[str] | None = None
    """The fields of a CSV format that were said; the others are recognised.

    None: all of them, as in a FILE_FORMAT, whose defaults are part of what it says.
    """
    format_is_implied: bool = False
    """It was not named: files whose names tell another format are refused."""
    files: tuple[str, ...] = ()
    pattern: str | None = None
    force: bool = False
    purge: bool = False
    archive: str | None = None
    """Where sources are moved once they are loaded: a location, or ``@name/path`` of a stage."""
    on_error: ErrorPolicy = field(default_factory=ErrorPolicy)
    size_limit: int | None = None
    max_files: int | None = None
    validation: Validation | None = None
    return_failed_only: bool = False
    match_by: ColumnMatch | None = None
    """None: by name where the files name their columns, by position where they do not."""
    columns: tuple[str, ...] = ()
    transformation: Transformation | None = None
    metadata_columns: tuple[MetadataColumn, ...] = ()
    schema: pa.Schema | None = None
    """Of a table that is to be made; None: inferred from the files."""
    partition_by: tuple[str, ...] = ()
    create: bool = True
    evolve: bool = False
    evolve_limit: int = 100
    rescue_column: str | None = None
    on_changed: OnChanged = "reload"
    load_uncertain_files: bool = False
    dry_run: bool = False
    label: str | None = None
    min_age: float = 0.0
    lease_seconds: float = 60.0
    batch_files: int = 100_000
    """Files in one load at most; more become several loads of one statement.

    The driver holds some kilobytes for each.
    """
    text: str | None = None
    """The statement as it was written, for the history."""

    def __post_init__(self) -> None:
        self._check_sources()
        self._check_limits()
        self._check_columns()
        if self.label is not None and not LABEL.fullmatch(self.label):
            raise StatementInvalid(
                f"a label is 1 to 100 letters, digits, dots, dashes or underscores, "
                f"not {self.label!r}"
            )
        if self.on_changed not in get_args(OnChanged):
            raise StatementInvalid(
                f"on_changed is one of {', '.join(get_args(OnChanged))}, not {self.on_changed!r}"
            )

    def _check_sources(self) -> None:
        if not self.stage:
            raise StatementInvalid("a stage needs a location")
        if any(".." in name.split("/") for name in self.files):
            raise StatementInvalid("a name in FILES cannot climb out of the stage with ..")
        if self.purge and self.archive is not None:
            raise StatementInvalid("PURGE removes files and ARCHIVE moves them: choose one")
        if self.archive == "":
            raise StatementInvalid("ARCHIVE needs a location")
        if self.files and self.pattern is not None:
            raise StatementInvalid("FILES and PATTERN cannot both be given: choose one")
        if self.pattern is not None:
            try:
                re.compile(self.pattern)
            except re.error as error:
                raise StatementInvalid(f"PATTERN is not a regular expression: {error}") from error

    def _check_limits(self) -> None:
        for name in ("size_limit", "max_files", "batch_files", "evolve_limit"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise StatementInvalid(f"{name.upper()} must be at least 1, not {value}")
        if self.min_age < 0 or self.lease_seconds <= 0:
            raise StatementInvalid("min_age and lease_seconds cannot be negative")
        if not math.isfinite(self.min_age) or not math.isfinite(self.lease_seconds):
            raise StatementInvalid("min_age and lease_seconds are numbers of seconds")

    def _check_columns(self) -> None:
        filled = [*self.columns, *(one.column for one in self.metadata_columns)]
        filled += [self.rescue_column] if self.rescue_column is not None else []
        repeated = {name for name in filled if filled.count(name) > 1}
        if repeated:
            raise StatementInvalid(f"columns are named twice: {', '.join(sorted(repeated))}")
        if self.transformation is None:
            return
        if self.match_by in ("name", "name_insensitive"):
            raise StatementInvalid("MATCH_BY_COLUMN_NAME and SELECT cannot go together")
        if self.validation is not None:
            raise StatementInvalid("VALIDATION_MODE cannot be used with a SELECT")
        if self.evolve:
            raise StatementInvalid(
                "a schema cannot evolve with a SELECT, which names the columns it fills",
                hint="Add the columns to the table first, or load without the SELECT.",
            )
        if self.metadata_columns:
            raise StatementInvalid(
                "INCLUDE_METADATA and SELECT cannot go together",
                hint="Name them in the SELECT: METADATA$FILENAME, METADATA$FILE_ROW_NUMBER …",
            )
        if self.rescue_column is not None:
            raise StatementInvalid(
                "RESCUE_COLUMN and SELECT cannot go together",
                hint="try_cast in the SELECT gives NULL for what does not fit.",
            )

    @property
    def says_all_of_its_format(self) -> bool:
        return self.format is not None and self.said is None

    @property
    def aborts(self) -> bool:
        return self.on_error.mode is ErrorMode.ABORT
