"""A session beside the caller's: the same context, views and functions, but strict settings.

Whether a bad cast is an error or NULL, whether a sum wraps, how a backslash in a literal is read:
all that is a setting of the session. A load must not depend on it, nor change it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from calque.spark.tasks import run_watched

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

Result = TypeVar("Result")

STRICT = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.ansi.doubleQuotedIdentifiers": "false",
    "spark.sql.caseSensitive": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.mapKeyDedupPolicy": "EXCEPTION",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}


def strict_session(spark: SparkSession) -> SparkSession:
    """A copy of a session that evaluates expressions strictly; the caller's stays as it is."""
    from pyspark.sql import SparkSession

    # A new session would not know the caller's functions and views; the copy does.
    copy = SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())
    for name, value in STRICT.items():
        copy.conf.set(name, value)
    return copy


def run_within(
    spark: SparkSession, job: Callable[[], Result], report: Callable[[], None] = lambda: None
) -> Result:
    """The job's result. It runs in a thread of its own, in which ``spark`` is the session.

    Spark looks for data sources in the session of the thread, whichever DataFrame it works on; and
    the threads of the caller keep theirs.
    """

    def run() -> Result:
        _java_session_class(spark).setActiveSession(spark._jsparkSession)
        return job()

    return run_watched(run, report)


def frame_of(spark: SparkSession, rows: pa.Table) -> DataFrame:
    """Rows as a DataFrame of this session, which does not thereby become the active one."""
    with _keep_active_session():
        made: DataFrame = spark.createDataFrame(rows)
    return made


@contextmanager
def _keep_active_session() -> Iterator[None]:
    from pyspark.sql import SparkSession

    before = SparkSession._activeSession
    try:
        yield
    finally:
        SparkSession._activeSession = before


def _java_session_class(spark: SparkSession) -> Any:
    return spark._get_j_spark_session_class(spark._jvm)
