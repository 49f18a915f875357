"""Files that failed, as they were then: a watch leaves them alone until they change."""

from __future__ import annotations

from collections.abc import Iterable

from calque.errors import LoadAborted
from calque.loader.model.outcome import VANISHED, Status
from calque.loader.model.staged_file import StagedFile
from calque.loader.report import NOT_LOADED, NOT_READ, Report
from calque.loader.run.formats.refusal import FileRefused
from calque.values import SourceIdentity


class FailedFiles:
    """Remembered by their identity, for as long as a watch lasts."""

    def __init__(self) -> None:
        self._failed: dict[str, SourceIdentity] = {}
        self._taken: dict[str, SourceIdentity] = {}

    def __len__(self) -> int:
        return len(self._failed)

    def take(self, file: StagedFile) -> bool:
        """Whether a file is to be loaded: not if it failed and is the same as then."""
        known = self._failed.get(file.location)
        if known is not None and known == file.identity:
            return False
        self._failed.pop(file.location, None)
        self._taken[file.location] = file.identity
        return True

    def note(self, report: Report | None, error: LoadAborted | None = None) -> list[str]:
        """Remember what failed in a run; the locations. Of an aborted one, what it was aborted for.

        Empty where no file can be named: then it was not a file's fault.
        """
        blamed = [] if report is None else [*_find_blamed(report, aborted=error is not None)]
        refused = error.__cause__ if error is not None else None
        if isinstance(refused, FileRefused):
            blamed.append(refused.row_error.file)
        found = {place: self._taken[place] for place in blamed if place in self._taken}
        self._failed.update(found)
        self._taken.clear()
        return sorted(found)


def _find_blamed(report: Report, *, aborted: bool) -> Iterable[str]:
    """The files that failed by themselves; an abort fails the others with them.

    A file that vanished is not one of them: where a stage was away for a moment, all come back.
    """
    for row in report.files:
        beside = (
            aborted and not row.errors and (row.message or "").startswith((NOT_LOADED, NOT_READ))
        )
        vanished = VANISHED in (row.message, row.first_error)
        if row.status == Status.FAILED and not beside and not vanished:
            yield row.location
