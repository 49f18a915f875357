"""What one sees who only looks: the plan of a dry run, or what a validation finds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from calque.ledger.manifest import FileResult
from calque.loader.model.outcome import FileOutcome, Status, first_error
from calque.loader.model.plan import Engine, WritePlan
from calque.loader.model.staged_file import StagedFile
from calque.loader.request.request import Validation


@dataclass(slots=True)
class Preview:
    """Result rows, and the plan, the first rows or the errors, whichever was asked for."""

    rows: list[FileResult] = field(default_factory=list)
    plan: WritePlan | None = None
    sample: pa.Table | None = None
    row_errors: list[dict[str, Any]] = field(default_factory=list)


def preview(plan: WritePlan) -> Preview:
    """DRY_RUN: every file of the plan, and the plan itself."""
    rows = [
        FileResult(file.location, file.name, Status.PLANNED, bytes=file.identity.size)
        for file in plan.files
    ]
    return Preview(rows, plan=plan)


def validate(validation: Validation, engine: Engine, plan: WritePlan) -> Preview:
    """VALIDATION_MODE: every error, or the rows that were asked for.

    A file without an error is PLANNED, one with errors FAILED, whatever ON_ERROR would make of it.
    """
    if validation.rows is not None:
        return Preview(sample=engine.sample(plan, validation.rows))
    files = {file.location: file for file in plan.files}
    found = Preview()
    for result in engine.run(plan):
        for one in result.outcomes:
            found.row_errors.extend(error._asdict() for error in one.errors)
            found.rows.append(_result_of(files[one.location], one))
    return found


def _result_of(file: StagedFile, outcome: FileOutcome) -> FileResult:
    return FileResult(
        location=file.location,
        name=file.name,
        status=Status.FAILED if outcome.error_count else Status.PLANNED,
        rows_parsed=outcome.rows_parsed,
        errors=outcome.error_count,
        first_error=first_error(outcome),
        bytes=file.identity.size,
        seconds=outcome.seconds,
        message=outcome.message,
    )
