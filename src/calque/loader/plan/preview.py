"""A dry run, or a validation: everything of a statement but the writing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from calque.ledger.manifest import FileResult
from calque.loader.commit.tables import Lake, Snapshot
from calque.loader.model.file_formats import FormatOptions
from calque.loader.model.outcome import Status
from calque.loader.model.plan import Engine, TargetSchema
from calque.loader.model.staged_file import StagedFile
from calque.loader.plan.evolve import schema_for_new_table
from calque.loader.plan.make_plan import make_plan
from calque.loader.plan.stage import Stage
from calque.loader.plan.validate import validate
from calque.loader.report import Report
from calque.loader.request.request import LoadRequest

EngineFor = Callable[[int], Engine]
"""Bytes to be read → where."""


def preview(
    request: LoadRequest,
    stage: Stage,
    lake: Lake,
    snapshot: Snapshot | None,
    files: Sequence[StagedFile],
    format: FormatOptions,
    engine_for: EngineFor,
    report: Report,
) -> None:
    """Fill the report with the plan, or with what the validation asked for."""
    plan = make_plan(
        request,
        "dry-run",
        files,
        lake.root if snapshot is not None else "",
        lake.data_prefix,
        _target(request, stage, snapshot, files, format, engine_for),
        format,
        stage.options,
        lake.options,
    )
    if request.validation is not None:
        validate(request.validation, engine_for(plan.bytes), plan, report)
        return
    report.plan = plan
    for file in files:
        report.files.add(
            FileResult(file.location, file.name, Status.PLANNED, bytes=file.identity.size)
        )


def _target(
    request: LoadRequest,
    stage: Stage,
    snapshot: Snapshot | None,
    files: Sequence[StagedFile],
    format: FormatOptions,
    engine_for: EngineFor,
) -> TargetSchema:
    """The table as it is, or as it would be made."""
    if snapshot is not None:
        return snapshot.target
    schema = schema_for_new_table(request, engine_for(0), files, format, stage.options)
    return TargetSchema(schema=schema, partition_columns=request.partition_by)
