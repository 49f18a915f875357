"""The one place that fills a report: what the steps of a run return is told here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from calque.errors import CalqueError, DataError, LoadAborted
from calque.ledger import Ledger
from calque.ledger.history import LoadRow, results_of
from calque.ledger.manifest import FileResult
from calque.loader.model.outcome import Status
from calque.loader.model.staged_file import StagedFile
from calque.loader.plan.compare import Decision
from calque.loader.report import Report
from calque.loader.request.request import LoadRequest

if TYPE_CHECKING:
    from calque.loader.after.purge import Purged
    from calque.loader.batch import BatchResult
    from calque.loader.plan.preview import Preview


class ReportFiller:
    """Adds to the report of one run what became of its files, step by step."""

    def __init__(self, request: LoadRequest, table: str) -> None:
        self._request = request
        self.report = Report(
            table,
            forced=request.force,
            dry_run=request.dry_run,
            only_failed=request.return_failed_only,
        )

    def note(self, text: str) -> None:
        """A line for people; the same one only once."""
        if text not in self.report.notes:
            self.report.notes.append(text)

    def note_repetition(self) -> None:
        """FORCE with a limit takes the first files each time, unless they go away."""
        asked = self._request
        limited = asked.max_files is not None or asked.size_limit is not None
        if asked.force and limited and not asked.purge and asked.archive is None:
            self.note(
                "FORCE begins at the first file each time: with a limit it loads the same files "
                "again; PURGE or ARCHIVE lets the next ones come"
            )

    def note_taken_in(self, loads: int) -> None:
        """Loads of other ledgers that this one has learned of."""
        if loads:
            self.note(f"loads of other ledgers were taken in from the table's log: {loads}")

    def note_new_table(self, sampled: int) -> None:
        """A table was made; how its schema came about, unless it was given."""
        if self._request.schema is None:
            seen = "1 file" if sampled == 1 else f"{sampled} files"
            self.note(f"the table was made; its schema was inferred from {seen}")

    def add_rows(self, rows: Iterable[FileResult]) -> None:
        """Result rows of files that were worked on."""
        for row in rows:
            self.report.files.add(row)

    def add_batch(self, result: BatchResult) -> None:
        """What one load did, or how far it came."""
        self.add_rows(result.rows)
        if result.load_id is not None:
            self.report.load_ids.append(result.load_id)
        if result.table_version is not None:
            self.report.table_version = result.table_version

    def add_replay(self, ledger: Ledger, done: Sequence[LoadRow]) -> None:
        """A label that was loaded whole: its report of then."""
        for one in done:
            self.report.load_ids.append(one.load_id)
            self.add_rows(results_of(ledger, one.load_id))
        self.report.table_version = done[0].table_version
        self.report.replayed = True

    def add_preview(self, found: Preview) -> None:
        """What a dry run or a validation found."""
        self.report.plan, self.report.sample = found.plan, found.sample
        self.report.row_errors = found.row_errors
        self.add_rows(found.rows)

    def add_skipped(self, one: Decision) -> None:
        """A file that is not to be loaded; DataError if it should be, and errors abort."""
        message = one.message
        if message is None and one.known is not None:
            message = f"loaded before, by load {one.known.load_id}"
        status = (one.status or Status.FAILED)._value_
        file = one.file
        self.report.files.skip(file.location, file.name, status, file.identity.size, message)
        if one.status is Status.FAILED and self._request.aborts:
            raise DataError(f"{file.location}: {message}")

    def add_moved(self, files: Sequence[StagedFile], error: CalqueError) -> None:
        """Files that all changed or vanished under our eyes: the next load sees them again."""
        message = f"changed while its schema was looked for: {error.message}"
        self.add_rows(
            FileResult(
                file.location,
                file.name,
                Status.CHANGED,
                bytes=file.identity.size,
                message=message,
            )
            for file in files
        )

    def add_purged(self, done: Purged) -> None:
        """Sources that were removed or moved away, and those that could not be."""
        self.report.purged += done.removed
        self.report.archived += done.archived
        self.report.notes.extend(done.troubles)

    def abort_error(self, error: DataError) -> LoadAborted:
        """The error a run ends with, with its report."""
        aborted = LoadAborted(
            error.message,
            hint=error.hint or "Nothing was loaded. ON_ERROR says what else may happen.",
        )
        aborted.report = self.report
        return aborted
