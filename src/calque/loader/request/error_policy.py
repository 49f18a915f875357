"""ON_ERROR: what errors in a file mean for it. Counts are true whatever is decided."""

from __future__ import annotations

from calque.loader.model.error_policy import ErrorMode, ErrorPolicy
from calque.loader.model.outcome import Status


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
