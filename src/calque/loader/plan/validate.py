"""VALIDATION_MODE: say what is wrong with the files, or show their first rows; load nothing."""

from __future__ import annotations

from calque.ledger.manifest import FileResult
from calque.loader.batch import first_error
from calque.loader.model.outcome import Status
from calque.loader.model.plan import Engine, WritePlan
from calque.loader.report import Report
from calque.loader.request.request import Validation


def validate(validation: Validation, engine: Engine, plan: WritePlan, report: Report) -> None:
    """Fill the report with every error, or with the rows that were asked for.

    A file without an error is PLANNED, one with errors FAILED, whatever ON_ERROR would make of it.
    """
    if validation.rows is not None:
        report.sample = engine.sample(plan, validation.rows)
        return
    sizes = {file.location: (file.name, file.identity.size) for file in plan.files}
    for result in engine.run(plan):
        for one in result.outcomes:
            name, size = sizes[one.location]
            report.row_errors.extend(error._asdict() for error in one.errors)
            report.files.add(
                FileResult(
                    location=one.location,
                    name=name,
                    status=Status.FAILED if one.error_count else Status.PLANNED,
                    rows_parsed=one.rows_parsed,
                    errors=one.error_count,
                    first_error=first_error(one),
                    bytes=size,
                    seconds=one.seconds,
                    message=one.message,
                )
            )
