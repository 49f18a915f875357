"""Which rows made a SELECT fail: Spark names the expression's error, not the row; this finds it.

The files of the failed task are read once more, here, and their rows given to the SELECT batch by
batch; the batch that fails is halved until one row is left. It costs about one reading of the
task's files, and is given up after a minute.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import pyarrow as pa

from calque.errors import CalqueError, DataError
from calque.loader.model.outcome import RowError
from calque.loader.model.plan import Transformation
from calque.loader.run.formats.refusal import Code, FileRefused, shorten
from calque.loader.run.transform.data_source import TransformJob
from calque.loader.run.transform.row_reader import OUTCOME, RowReader
from calque.spark.job_errors import ExpressionFailed, map_job_errors
from calque.spark.strict_session import frame_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE = 60.0
"""Seconds of looking at most."""


def locate_errors(
    spark: SparkSession, job: TransformJob, error: ExpressionFailed, most: int | None = None
) -> list[FileRefused]:
    """The files of the failed task on which the SELECT fails, each by its first such record.

    As many as can be told in time, but one at least; else DataError with the files of the task.
    """
    finder = _RowFinder(spark, job, time.monotonic() + PATIENCE)
    refused: list[FileRefused] = []
    # Where the files are gone, or Spark is, the first error counts.
    with suppress(CalqueError):
        rows = islice(finder.find(error.task), most)
        refused.extend(finder.describe(row, error) for row in rows)
    if not refused:
        raise DataError(f"{error.message}{_files_of(job, error)}", hint=error.hint) from error
    return refused


@dataclass(slots=True)
class _RowFinder:
    spark: SparkSession
    job: TransformJob
    until: float

    def find(self, task: int | None) -> Iterator[pa.RecordBatch]:
        """The first row of each file that fails, as a batch of one, until time is over."""
        bad: set[str] = set()
        for batch in self._batches(task):
            file = batch.column("_metadata_file")[0].as_py()
            if time.monotonic() > self.until:
                return
            if file not in bad and self._failure(batch, self._whole) is not None:
                bad.add(file)
                yield self._bisect(batch)

    def describe(self, row: pa.RecordBatch, error: ExpressionFailed) -> FileRefused:
        """The refusal of the row's file, naming record and expression."""
        file = row.column("_metadata_file")[0].as_py()
        record = row.column("_metadata_row_number")[0].as_py()
        expression, column, failure = self._failing_part(row) or ("", None, error)
        named = f" {expression}" if expression else ""
        refused = FileRefused(
            f"record {record}: the expression{named} failed: {failure.reason} ({file})",
            hint=error.hint,
        )
        values = {name: row.column(name)[0].as_py() for name in self.job.raw.names}
        refused.row_error = RowError(
            file=file,
            line=0,
            record=record,
            column=column,
            character=None,
            target_type=None,
            value=None,
            code=Code.EXPRESSION,
            message=f"the expression{named} failed: {failure.reason}",
            raw=shorten(str(values)),
        )
        return refused

    def _batches(self, task: int | None) -> Iterator[pa.RecordBatch]:
        read = RowReader(self.job.plan, self.job.raw)
        chosen = self.job.tasks if task is None else self.job.tasks[task : task + 1]
        for one in chosen:
            for batch in read.read_task(one):
                if batch.num_rows and not batch.column(OUTCOME)[0].is_valid:
                    yield batch

    def _bisect(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        while batch.num_rows > 1:
            half = batch.num_rows // 2
            first = batch.slice(0, half)
            failed = self._failure(first, self._whole) is not None
            batch = first if failed else batch.slice(half)
        return batch

    def _failing_part(self, row: pa.RecordBatch) -> tuple[str, str | None, ExpressionFailed] | None:
        """The first part of the SELECT that fails on the row by itself."""
        chosen = self._whole
        if chosen.where is not None:
            failure = self._failure(row, Transformation((chosen.where,), ()))
            if failure is not None:
                return f"WHERE {chosen.where}", None, failure
        for expression, column in zip(chosen.expressions, chosen.columns, strict=True):
            failure = self._failure(row, Transformation((expression,), ()))
            if failure is not None:
                return expression, column, failure
        return None

    @property
    def _whole(self) -> Transformation:
        assert self.job.plan.transformation is not None
        return self.job.plan.transformation

    def _failure(self, batch: pa.RecordBatch, chosen: Transformation) -> ExpressionFailed | None:
        rows = frame_of(self.spark, pa.Table.from_batches([batch]))
        rows = rows.selectExpr(*self.job.columns.expressions)
        if chosen.where is not None:
            rows = rows.where(chosen.where)
        try:
            with map_job_errors():
                picked = rows.selectExpr(*chosen.expressions)
                # Names may repeat, which a sink refuses.
                picked = picked.toDF(*(f"v{index}" for index in range(len(picked.columns))))
                picked.write.format("noop").mode("overwrite").save()
        except ExpressionFailed as failure:
            return failure
        return None


def _files_of(job: TransformJob, error: ExpressionFailed) -> str:
    """The files among which the row is."""
    tasks = job.tasks if error.task is None else job.tasks[error.task : error.task + 1]
    names = [piece.file.location for task in tasks for piece in task.pieces]
    more = f" and {len(names) - 3} files more" if len(names) > 3 else ""
    return f" (in {', '.join(names[:3])}{more})"
