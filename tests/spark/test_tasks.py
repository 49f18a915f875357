"""Work on Spark: one task an item, results in order, a name for each attempt."""

from __future__ import annotations

import os

from calque.spark.session import SparkOptions, context
from calque.spark.tasks import cores_of, run_tasks


def test_results_in_order() -> None:
    """Every item has its result, in the order of the items, and each attempt its own name."""
    spark = context(options=SparkOptions(master="local[2,2]"))
    results = run_tasks(spark, list(range(7)), lambda item, attempt: (item, attempt), about="test")
    assert [item for item, _ in results] == list(range(7))
    assert len({attempt for _, attempt in results}) == 7
    assert cores_of(spark) >= 1


def test_nothing_to_do() -> None:
    """No items, no job."""
    spark = context(options=SparkOptions(master="local[2,2]"))
    assert run_tasks(spark, [], lambda item, attempt: item, about="test") == []


def test_work_runs_elsewhere() -> None:
    """Tasks run in worker processes, not in the driver."""
    spark = context(options=SparkOptions(master="local[2,2]"))
    found = run_tasks(spark, [1, 2], lambda item, attempt: os.getpid(), about="test")
    assert os.getpid() not in found
