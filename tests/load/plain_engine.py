"""A small real engine for tests of the protocol: CSV by the csv module, one process, one file."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from calque.errors import ConditionNotMatch, NotFound
from calque.load.digest import content_hash
from calque.load.manifest import (
    DataFile,
    FileOutcome,
    RowError,
    Span,
    StagedFile,
    Status,
    TaskResult,
)
from calque.load.rows import footer_stats
from calque.load.work import ErrorMode, FormatOptions, WritePlan
from calque.operator import Operator


class PlainEngine:
    name = "plain"

    def run(self, plan: WritePlan) -> Iterator[TaskResult]:
        for task in plan.tasks:
            yield self._task(plan, [piece.file for piece in task.pieces], task.number)

    def infer(self, files: Sequence[StagedFile], format: FormatOptions) -> pa.Schema:
        header = _body(files[0]).decode().splitlines()[0].split(",")
        return pa.schema([(name, pa.int64() if name == "id" else pa.string()) for name in header])

    def sample(self, plan: WritePlan, rows: int) -> pa.Table:
        found, _, _ = _parse(plan, next(plan.files))
        return pa.Table.from_pylist(found, schema=plan.target.schema).slice(0, rows)

    def close(self) -> None:
        pass

    def _task(self, plan: WritePlan, files: list[StagedFile], number: int) -> TaskResult:
        rows: list[dict[str, object]] = []
        spans, outcomes = [], []
        for file in files:
            found, outcome, _ = _parse(plan, file)
            if found:
                spans.append(Span(file.location, len(rows), len(found)))
            rows += found
            outcomes.append(outcome)
        if not rows or plan.validate_only:
            return TaskResult((), tuple(outcomes))
        out = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(rows, schema=plan.target.schema), out)
        path = plan.data_prefix + plan.data_file_name(number, uuid4().hex[:8], 0)
        operator, base = Operator.locate(plan.root.rstrip("/") + "/")
        operator.write(base + path, out.getvalue())
        data = DataFile(
            path,
            len(out.getvalue()),
            len(rows),
            columns=footer_stats(pq.read_metadata(io.BytesIO(out.getvalue()))),
            spans=tuple(spans),
        )
        return TaskResult((data,), tuple(outcomes))


def _body(file: StagedFile) -> bytes:
    operator, path = Operator.locate(file.location)
    return operator.read(path, if_match=file.identity.pin)


def _parse(
    plan: WritePlan, file: StagedFile
) -> tuple[list[dict[str, object]], FileOutcome, list[RowError]]:
    try:
        body = _body(file)
    except ConditionNotMatch:
        return [], FileOutcome(file.location, Status.CHANGED, message="it changed"), []
    except NotFound:
        return [], FileOutcome(file.location, Status.FAILED, message="it vanished"), []
    rows: list[dict[str, object]] = []
    errors: list[RowError] = []
    read = csv.DictReader(io.StringIO(body.decode()))
    for record, row in enumerate(read, 1):
        try:
            rows.append(
                {
                    field.name: int(row[field.name])
                    if field.type == pa.int64()
                    else row[field.name]
                    for field in plan.target.schema
                    if field.name in row
                }
            )
        except ValueError as error:
            errors.append(
                RowError(
                    file.location,
                    record + 1,
                    record,
                    "id",
                    1,
                    "int64",
                    row["id"],
                    "CAST",
                    str(error),
                    ",".join(map(str, row.values())),
                )
            )
    parsed = len(rows) + len(errors)
    status = Status.LOADED if rows else Status.EMPTY
    if errors:
        skip = plan.on_error.mode is ErrorMode.SKIP_FILE or plan.on_error.mode is ErrorMode.ABORT
        status = Status.FAILED if skip else Status.PARTIALLY_LOADED
        rows = [] if skip else rows
    outcome = FileOutcome(
        file.location,
        status,
        parsed,
        len(rows),
        len(errors),
        tuple(errors),
        len(body),
        0.0,
        content_hash([body]),
    )
    return rows, outcome, errors
