"""The values that travel between the steps of a load: staged files in, data files and outcomes out.

All of them pickle, since tasks return them to the driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from calque.loader.model.data_file import DataFile
from calque.values.row_errors import RowError as RowError

VANISHED = "the file has vanished since it was listed"
"""Why a file failed that is not bad: it may come back as it was, with the disk it lies on."""

SHOWN_OF_VALUE = 60
"""Characters of a bad value in a line about it; the ledger keeps more."""


class Status(StrEnum):
    """What became of a staged file in one statement."""

    LOADED = "LOADED"
    PARTIALLY_LOADED = "PARTIALLY_LOADED"
    SKIPPED_LOADED = "SKIPPED_LOADED"
    SKIPPED_UNCERTAIN = "SKIPPED_UNCERTAIN"
    IN_PROGRESS = "IN_PROGRESS"
    CHANGED = "CHANGED"
    FAILED = "FAILED"
    EMPTY = "EMPTY"
    PLANNED = "PLANNED"
    """Of a dry run: it would be loaded."""


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """What became of one staged file inside the tasks; the driver adds what only it knows."""

    location: str
    status: Status
    rows_parsed: int = 0
    rows_loaded: int = 0
    error_count: int = 0
    errors: Sequence[RowError] = ()
    """At most the first thousand; ``error_count`` is always true."""
    bytes: int = 0
    seconds: float = 0.0
    content_hash: str | None = None
    message: str | None = None
    """Why the file was skipped, changed or failed, where no single row is to blame."""


@dataclass(frozen=True, slots=True)
class TaskResult:
    """What one winning task attempt returns to the driver."""

    data_files: tuple[DataFile, ...]
    outcomes: tuple[FileOutcome, ...]


def first_error(outcome: FileOutcome) -> str | None:
    """The first error of a file with its position and the value it is about, in one line."""
    if not outcome.errors:
        return outcome.message if outcome.error_count else None
    return describe_error(outcome.errors[0])


def describe_error(one: RowError) -> str:
    """Where a row stands that is refused, its value and why, in one line."""
    if not one.line and not one.record and one.column is None:
        return one.message  # of the file as a whole
    place = f"line {one.line}" if one.line else f"record {one.record}"
    if one.column:
        place += f", column {one.column}"
    if one.character:
        place += f", character {one.character}"
    if one.column is None or one.value is None:
        return f"{place}: {one.message}"
    # Of a column, the message says what is wrong with its value: "is no BIGINT".
    value = one.value if len(one.value) <= SHOWN_OF_VALUE else f"{one.value[:SHOWN_OF_VALUE]}…"
    return f"{place}: {value!r} {one.message}"
