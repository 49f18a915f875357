"""What a load tells of its files: their records, result rows and errors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from calque.ledger.manifest import FileResult, LoadedFile
from calque.loader.commit.remove_rows import Part
from calque.loader.model.data_file import DataFile
from calque.loader.model.outcome import FileOutcome, Status, first_error
from calque.loader.model.staged_file import StagedFile
from calque.values.row_errors import RowErrors

KEPT = (Status.LOADED, Status.PARTIALLY_LOADED, Status.EMPTY)
"""What counts as loaded: these files get a record."""


def is_kept(outcome: FileOutcome | None) -> bool:
    """Whether a file counts as loaded; one without an outcome was not read to its end."""
    return outcome is not None and outcome.status in KEPT


def result_of(file: StagedFile, outcome: FileOutcome | None) -> FileResult:
    if outcome is None:
        return FileResult(file.location, file.name, Status.FAILED, bytes=file.identity.size)
    return FileResult(
        location=file.location,
        name=file.name,
        status=outcome.status,
        rows_parsed=outcome.rows_parsed,
        rows_loaded=outcome.rows_loaded,
        errors=outcome.error_count,
        first_error=first_error(outcome),
        bytes=file.identity.size,
        seconds=outcome.seconds,
        message=outcome.message,
    )


def sources_of(
    files: Sequence[StagedFile],
    outcomes: dict[str, FileOutcome],
    data: Sequence[DataFile],
    verified_at: int,
) -> list[LoadedFile]:
    parts: dict[str, list[Part]] = defaultdict(list)
    for file in data:
        for span in file.spans:
            if span.rows:
                parts[span.location].append((file.path, span.first_row, span.rows))
    return [
        LoadedFile(
            identity=one.identity,
            rows=outcomes[one.location].rows_loaded,
            errors=outcomes[one.location].error_count,
            content_hash=outcomes[one.location].content_hash,
            verified_at=verified_at,
            parts=tuple(parts.get(one.location, ())),
            about=one.about,
        )
        for one in files
    ]


def errors_of(outcomes: dict[str, FileOutcome]) -> dict[str, bytes]:
    return {place: RowErrors.of(one.errors).packed for place, one in outcomes.items() if one.errors}
