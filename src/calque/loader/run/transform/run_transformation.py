"""Statements that transform: ``SELECT …`` as Spark SQL between our reader and our writer.

One narrow stage: a Python worker reads and casts nothing but what the file says, the JVM evaluates
the expressions, another Python worker casts strictly to the table's columns and writes. What became
of each staged file travels along as a row of its own, after the file's last row, so that the writer
knows whether to keep the rows before it.

Both halves are Python data sources (``data_source``). They are told their work, and tell what
they did, by two files in a folder of the driver's machine: Spark runs the driver's side of a data
source in a process of its own.
"""

from __future__ import annotations

import pickle
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from calque.errors import CalqueError, ConditionNotMatch, NotFound, StatementInvalid
from calque.loader.model.content_hash import content_hash
from calque.loader.model.error_policy import ErrorMode
from calque.loader.model.file_formats import FormatOptions
from calque.loader.model.outcome import VANISHED, FileOutcome, Status, TaskResult
from calque.loader.model.plan import Advance, OnAdvance, Transformation, WritePlan
from calque.loader.model.staged_file import StagedFile
from calque.loader.run.cut_into_tasks import cut
from calque.loader.run.formats.refusal import FileRefused
from calque.loader.run.formats.unify_schemas import settle_type
from calque.loader.run.infer import SAMPLED, infer_schema, sample_of
from calque.loader.run.piece_joiner import PieceJoiner
from calque.loader.run.transform.data_source import (
    SOURCE_NAME,
    TransformJob,
    TransformSource,
    read_outputs,
)
from calque.loader.run.transform.field_paths import columns_of
from calque.loader.run.transform.locate_error import locate_errors
from calque.loader.run.transform.row_reader import OUTCOME, select_columns, source_schema
from calque.loader.run.transform.row_writer import FILE, ROW, RowWriter
from calque.spark.job_errors import ExpressionFailed, map_job_errors
from calque.spark.strict_session import frame_of, run_within, strict_session
from calque.spark.tasks import cores_of, job_group, tasks_done

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def run_transformation(
    spark: SparkSession, plan: WritePlan, advance: OnAdvance | None = None
) -> Iterator[TaskResult]:
    """Read, transform, write; one result for each task.

    A file on which the SELECT fails gives the load up where any error does. Else it is failed as a
    whole, for Spark tells no rows apart, and the others are run again without it. So they are where
    no file that was looked at tells its columns, since it changed, say.
    """
    left_out: list[FileOutcome] = []
    while plan.tasks:
        try:
            results = _run_job(spark, plan, advance)
        except _FilesLeftOut as error:
            left_out += error.outcomes
            bad = {one.location for one in left_out}
            plan = plan.narrow(plan.load_id, {one.location for one in plan.files} - bad)
        else:
            yield from results
            break
    if left_out:
        yield TaskResult((), tuple(left_out))


class _FilesLeftOut(Exception):
    """Files that are not loaded, in a load that goes on without them."""

    def __init__(self, outcomes: Iterable[FileOutcome]) -> None:
        self.outcomes = tuple(outcomes)


def _failed_outcome(refused: FileRefused) -> FileOutcome:
    why = refused.row_error
    return FileOutcome(why.file, Status.FAILED, error_count=1, errors=(why,), message=why.message)


def _run_job(spark: SparkSession, plan: WritePlan, advance: OnAdvance | None) -> list[TaskResult]:
    with _prepare_job(spark, plan, _find_columns(plan)) as (strict, job, folder):
        try:
            with map_job_errors():
                _write(strict, job, folder, advance)
        except ExpressionFailed as error:
            aborts = plan.on_error.mode is ErrorMode.ABORT
            locate = partial(locate_errors, strict, job, error, most=1 if aborts else None)
            refused = run_within(strict, locate)
            if aborts:
                raise refused[0] from error
            raise _FilesLeftOut(map(_failed_outcome, refused)) from error
        joiner = PieceJoiner(plan, {})
        made = read_outputs(folder)
        results = [joiner.add(output) for output in made]
    if advance is not None:
        advance(sum((output.advance for output in made), Advance()))
    return results


def _write(spark: SparkSession, job: TransformJob, folder: str, advance: OnAdvance | None) -> None:
    """Run the job. While it runs Spark tells how many tasks have ended, and no more than that."""
    group = f"calque-{uuid.uuid4().hex}"
    files = sum(len(task.pieces) for task in job.tasks)
    size = sum(task.bytes for task in job.tasks)

    def report_progress() -> None:
        done, total = tasks_done(spark.sparkContext, group)
        if done and advance is not None:
            advance(Advance(files * done // total, 0, size * done // total))

    def save() -> None:
        rows = _select_rows(spark, job, folder)
        rows.write.format(SOURCE_NAME).option("job", folder).mode("append").save()

    with job_group(spark.sparkContext, group):
        run_within(spark, save, report_progress)


def sample_transformation(spark: SparkSession, plan: WritePlan, rows: int) -> pa.Table:
    """The first rows of the SELECT, cast to the table; nothing is written."""
    raw = _infer_raw(plan, list(plan.files))
    with _prepare_job(spark, plan, raw) as (strict, job, folder), map_job_errors():

        def take() -> pa.Table:
            chosen = _select_rows(strict, job, folder).where(f"{OUTCOME} IS NULL")
            return chosen.limit(rows).toArrow()

        found = run_within(strict, take)
    return RowWriter(replace(plan, tasks=())).cast_table(found)


def schema_of_select(
    spark: SparkSession, chosen: Transformation, raw: pa.Schema, format: FormatOptions
) -> pa.Schema:
    """The columns of what a SELECT makes of files with these columns; no file is read."""
    from pyspark.sql.pandas.types import to_arrow_schema

    columns = columns_of(chosen, select_columns(raw, format), format)
    empty = source_schema(columns.raw, format).empty_table()
    with map_job_errors():
        strict = strict_session(spark)

        def analyse() -> pa.Schema:
            rows = frame_of(strict, empty).selectExpr(*columns.expressions)
            rows = rows.selectExpr(*chosen.expressions)
            named = rows.toDF(*(f"v{index}" for index in range(len(rows.columns))))
            return to_arrow_schema(named.schema, timezone="UTC")

        found = run_within(strict, analyse)
    fields = zip(chosen.columns, found, strict=True)
    return pa.schema([pa.field(name, settle_type(one.type)) for name, one in fields])


def _find_columns(plan: WritePlan) -> pa.Schema:
    """The columns of the files; those that do not tell them are left out where all do not.

    So are files without a byte, where there are no others: they have no rows to select from.
    """
    try:
        return _infer_raw(plan, list(plan.files))
    except CalqueError as error:
        looked_at = sample_of([file for file in plan.files if file.identity.size], SAMPLED)
        outcomes = [one for file in looked_at if (one := _look_at(plan, file)) is not None]
        if not looked_at:
            empty = partial(FileOutcome, status=Status.EMPTY, content_hash=content_hash(()))
            outcomes = [empty(file.location) for file in plan.files]
        if not outcomes:
            raise
        raise _FilesLeftOut(outcomes) from error


def _infer_raw(plan: WritePlan, files: Sequence[StagedFile]) -> pa.Schema:
    return infer_schema(
        files,
        plan.format,
        plan.source_options,
        raw=True,
        skip_bad=plan.on_error.mode is not ErrorMode.ABORT,
    ).schema


def _look_at(plan: WritePlan, file: StagedFile) -> FileOutcome | None:
    """Why a file is left out; None where it is not, or is bad and gives the load up."""
    try:
        _infer_raw(plan, [file])
    except ConditionNotMatch as error:
        return FileOutcome(file.location, Status.CHANGED, message=error.message)
    except NotFound:
        return FileOutcome(file.location, Status.FAILED, error_count=1, message=VANISHED)
    except CalqueError as error:
        if error.retryable or plan.on_error.mode is ErrorMode.ABORT:
            return None
        if isinstance(error, FileRefused):
            return _failed_outcome(error)
        return FileOutcome(file.location, Status.FAILED, error_count=1, message=error.message)
    return None


@contextmanager
def _prepare_job(
    spark: SparkSession, plan: WritePlan, raw: pa.Schema
) -> Iterator[tuple[SparkSession, TransformJob, str]]:
    """A session for it, the work, and the folder where it is written down for the data source."""
    chosen = plan.transformation
    assert chosen is not None, "only a plan that transforms comes here"
    columns = columns_of(chosen, select_columns(raw, plan.format), plan.format)
    with map_job_errors():
        tasks = cut(plan, cores_of(spark.sparkContext))
        strict = strict_session(spark)
        strict.dataSource.register(TransformSource)
    job = TransformJob(replace(plan, tasks=()), tasks, columns)
    with tempfile.TemporaryDirectory(prefix="calque-") as folder:
        (Path(folder) / "job").write_bytes(pickle.dumps(job))
        yield strict, job, folder


def _select_rows(spark: SparkSession, job: TransformJob, folder: str) -> DataFrame:
    transformation = job.plan.transformation
    assert transformation is not None
    if len(transformation.expressions) != len(transformation.columns):
        raise StatementInvalid(
            f"the SELECT has {len(transformation.expressions)} expressions for "
            f"{len(transformation.columns)} columns"
        )
    rows = spark.read.format(SOURCE_NAME).option("job", folder).load()
    rows = rows.selectExpr(*job.columns.expressions)
    if transformation.where is not None:
        rows = rows.where(f"{OUTCOME} IS NOT NULL OR ({transformation.where})")
    return rows.selectExpr(*_select_list(transformation))


def _select_list(transformation: Transformation) -> Iterator[str]:
    """The SELECT list; the rows that carry outcomes pass by every expression."""
    for index, expression in enumerate(transformation.expressions):
        yield f"CASE WHEN {OUTCOME} IS NULL THEN ({expression}) END AS v{index}"
    yield f"_metadata_file AS {FILE}"
    yield f"_metadata_row_number AS {ROW}"
    yield OUTCOME
