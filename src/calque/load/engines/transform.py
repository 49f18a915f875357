"""Statements that transform: ``SELECT …`` as Spark SQL between our reader and our writer.

One narrow stage: a Python worker reads and casts nothing but what the file says, the JVM evaluates
the expressions, another Python worker casts strictly to the table's columns and writes. What became
of each staged file travels along as a row of its own, after the file's last row, so that the writer
knows whether to keep the rows before it.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from calque.errors import StatementInvalid
from calque.load.cut import cut
from calque.load.engines.spark_errors import mapped
from calque.load.engines.transform_read import OUTCOME, ReadTask, source_schema
from calque.load.engines.transform_write import FILE, ROW, WriteRows
from calque.load.infer import infer_schema
from calque.load.joining import Joiner
from calque.load.manifest import TaskResult
from calque.load.work import Transformation, WritePlan, WriteTask
from calque.spark.tasks import cores_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def run_transformation(spark: SparkSession, plan: WritePlan) -> Iterator[TaskResult]:
    """Read, transform, write; one result for each task."""
    tasks = cut(plan, cores_of(spark))
    selected = _selected(spark, plan, tasks)
    writer = WriteRows(replace(plan, tasks=()))
    with mapped():
        made = selected.mapInArrow(cast(Any, writer), "output binary").collect()
    joiner = Joiner(plan, {})
    for row in made:
        yield joiner.add(pickle.loads(row["output"]))


def sample_transformation(spark: SparkSession, plan: WritePlan, rows: int) -> pa.Table:
    """The first rows of the SELECT, cast to the table; nothing is written."""
    tasks = cut(plan, cores_of(spark))
    with mapped():
        found = _selected(spark, plan, tasks).where(f"{OUTCOME} IS NULL").limit(rows).toArrow()
    return WriteRows(replace(plan, tasks=())).cast_table(found)


def _selected(spark: SparkSession, plan: WritePlan, tasks: tuple[WriteTask, ...]) -> DataFrame:
    from pyspark.sql.pandas.types import from_arrow_schema

    transformation = plan.transformation
    assert transformation is not None
    if len(transformation.expressions) != len(transformation.columns):
        raise StatementInvalid(
            f"the SELECT has {len(transformation.expressions)} expressions for "
            f"{len(transformation.columns)} columns"
        )
    raw = infer_schema(list(plan.files), plan.format, plan.source_options, raw=True).schema
    reader = ReadTask(replace(plan, tasks=()), raw)
    payload = [(pickle.dumps(task),) for task in tasks]
    with mapped():
        spread = spark.sparkContext.parallelize(payload, len(payload))
        listed = spark.createDataFrame(spread, "task binary")
        shape = from_arrow_schema(source_schema(raw))
        rows = listed.mapInArrow(cast(Any, reader), shape)
        if transformation.where is not None:
            rows = rows.where(f"{OUTCOME} IS NOT NULL OR ({transformation.where})")
        return rows.selectExpr(*_expressions(transformation))


def _expressions(transformation: Transformation) -> Iterator[str]:
    """The SELECT list; the rows that carry outcomes pass by every expression."""
    for index, expression in enumerate(transformation.expressions):
        yield f"CASE WHEN {OUTCOME} IS NULL THEN ({expression}) END AS v{index}"
    yield f"_metadata_file AS {FILE}"
    yield f"_metadata_row_number AS {ROW}"
    yield OUTCOME
