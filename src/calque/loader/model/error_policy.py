"""ON_ERROR: how many bad rows a statement or a file may have, and what they mean for the file.

Counts are true whatever is decided.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from calque.errors import InvalidInput
from calque.loader.model.outcome import Status


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


def over_limit(policy: ErrorPolicy, errors: int, records: int, *, final: bool) -> bool:
    """Whether a file with so many errors is left out; a percentage is known at its end only."""
    if policy.mode is not ErrorMode.SKIP_FILE or not errors:
        return False
    if policy.percent is None:
        return errors >= policy.limit
    return final and errors * 100 >= policy.percent * records


def status_of(records: int, errors: int, loaded: int) -> Status:
    """What became of a file that was read to its end."""
    if not records:
        return Status.EMPTY
    if not errors:
        return Status.LOADED
    return Status.PARTIALLY_LOADED if loaded else Status.FAILED


def skipped_message(policy: ErrorPolicy, errors: int) -> str:
    """Why a file was left out."""
    count = f"{errors} error{'s' if errors != 1 else ''}"
    return f"left out for {count} (ON_ERROR = {policy})"
