"""The Spark session, in one place: the caller's own, else a configured master, else local."""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from calque.errors import Unsupported
from calque.spark import aot, gateway
from calque.spark.java import find_jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
}
LOOPBACK = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
"""A local session listens to nobody else."""


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """How a session is started where none is given. ``master`` None means local, on every core."""

    master: str | None = None
    memory: str = "768m"
    """Heap of the driver's JVM. Rows do not pass through it, so little is enough."""
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_local(self) -> bool:
        return self.master is None or self.master.startswith("local")


def session(given: SparkSession | None = None, options: SparkOptions | None = None) -> SparkSession:
    """The session to work on.

    The caller's own if given; else the one that is active in this process; else a new one. Starting
    takes one to five seconds and a JVM, so ask only when there is work. A session started here ends
    with the process.
    """
    if given is not None:
        return given
    options = options or SparkOptions()
    spark_home = gateway.spark_home()
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    if os.environ.get("SPARK_HOME", str(spark_home)) != str(spark_home):
        # The user's own Spark distribution: its scripts know its class path and its settings.
        return _build(options)
    return _start(options)


def prepare() -> Path | None:
    """Make the class cache by a training run (about half a minute); None where the JVM has none.

    A cache that fits is left alone; one that does not is made again.
    """
    jvm = find_jvm()
    command = gateway.java_command(jvm)
    path = aot.cache_path(jvm, command)
    if path is None or (path.is_file() and aot.fits(path, command)):
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder) / "cache.aot"
        _train(made)
        if not (made.is_file() and aot.fits(made, command)):
            return None
        made.replace(path)
    aot.forget_others(path)
    return path


def _start(options: SparkOptions) -> SparkSession:
    started = gateway.start(_settings(options), options.memory)
    spark = _connect(options, started)
    atexit.register(_end, spark, started)
    return spark


def _end(spark: SparkSession, started: gateway.Gateway) -> None:
    """Stop Spark before its JVM, or both complain of the other."""
    spark.stop()
    started.stop()


def _connect(options: SparkOptions, started: gateway.Gateway) -> SparkSession:
    told = {
        "PYSPARK_GATEWAY_PORT": str(started.port),
        "PYSPARK_GATEWAY_SECRET": started.secret,
    }
    os.environ.update(told)
    try:
        return _build(options)
    except BaseException:
        started.stop()
        raise
    finally:
        for name in told:
            os.environ.pop(name, None)


def _build(options: SparkOptions) -> SparkSession:
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder
    for name, value in _settings(options).items():
        builder = builder.config(name, value)
    built: SparkSession = builder.getOrCreate()
    return built


def _settings(options: SparkOptions) -> dict[str, str]:
    place = LOOPBACK if options.is_local else {}
    master = options.master or "local[*]"
    return {
        "spark.app.name": "calque",
        **QUIET,
        **place,
        **options.settings,
        "spark.master": master,
    }


def _train(output: Path) -> None:
    """Run what sessions run first, in a JVM that writes down what it loaded."""
    from pyspark import SparkContext

    if SparkContext._active_spark_context is not None:
        raise Unsupported("the class cache cannot be made while a session is open in this process")
    options = SparkOptions(master="local[2]")
    started = gateway.start(_settings(options), options.memory, train=output)
    spark = _connect(options, started)
    spark.sparkContext.parallelize([1, 2], 2).map(abs).collect()
    spark.range(8).selectExpr("sum(id)").collect()
    spark.stop()
    started.stop(patience=180)
    SparkContext._gateway = None
