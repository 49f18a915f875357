"""Which engine a load runs on."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from calque.errors import MissingExtra
from calque.late_module import LateModule
from calque.loader.model.plan import Engine
from calque.spark.gateway import spark_home
from calque.spark.session import SparkOptions
from calque.values import MIB

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from calque.loader.run.engines import local
else:
    local = LateModule("calque.loader.run.engines.local")

SPARK_FROM = 256 * MIB
"""Below it a JVM takes longer to start than the load to run."""


def choose_engine(
    *,
    spark: SparkSession | SparkOptions | str | None = None,
    bytes: int = 0,
    transforms: bool = False,
    configured: SparkOptions | None = None,
) -> Engine:
    """Spark where it was given, where SQL expressions need it, or where there is much to read.

    ``spark``: a session, options, the URL of a master, or ``"local"`` for plain processes whatever
    the size. ``configured``: what a session is started with where only a master, or nothing, is
    given. Nothing is started here: a session starts when the first plan runs.
    """
    if spark == "local" and not transforms:
        return local.LocalEngine()
    if spark is None and not transforms and (bytes < SPARK_FROM or not _is_installed()):
        return local.LocalEngine()
    spark_home()  # MissingExtra, before anything is imported that needs it
    from calque.loader.run.engines.spark import SparkEngine

    return SparkEngine(_spark_for(spark, configured or SparkOptions()))


def _is_installed() -> bool:
    """Where there is no Spark, much is read by plain processes too: it takes longer, no more."""
    try:
        spark_home()
    except MissingExtra:
        return False
    return True


def _spark_for(
    spark: SparkSession | SparkOptions | str | None, configured: SparkOptions
) -> SparkSession | SparkOptions:
    if spark is None:
        return configured
    if isinstance(spark, str):
        return replace(configured, master=None if spark == "local" else spark)
    return spark
