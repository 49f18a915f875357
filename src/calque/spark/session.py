"""The Spark session, in one place: the caller's own, else a configured master, else local."""

from __future__ import annotations

import atexit
import logging
import os
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calque.errors import Unavailable, Unsupported
from calque.spark import class_cache, gateway
from calque.spark.errors import map_errors
from calque.spark.java import find_jvm

if TYPE_CHECKING:
    from pyspark import SparkContext
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
PRELOADING = {"spark.python.daemon.module": "calque.spark.worker_daemon"}
"""For a local session whose workers run the Python that runs us."""


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
        context(given)
        return given
    context(options=options)
    from pyspark.sql import SparkSession

    with map_errors():
        made: SparkSession = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
    return made


def context(given: SparkSession | None = None, options: SparkOptions | None = None) -> SparkContext:
    """What tasks without SQL run on: that of :func:`session`, started without the SQL half.

    The SQL half of a session takes as long to start as the rest of Spark.
    """
    if given is not None:
        return _context_of(given)
    spark_home = gateway.spark_home()
    named = os.environ.get("SPARK_HOME")
    if named and Path(named).resolve() != spark_home:
        # The user's own Spark distribution: its scripts know its class path and its settings.
        return _build(options or SparkOptions())
    return _active_context() or _start(options or SparkOptions())


def _context_of(given: SparkSession) -> SparkContext:
    """The context of the caller's session, if it lives."""
    if type(given).__module__.startswith("pyspark.sql.connect"):
        raise Unsupported(
            "a Spark Connect session cannot run tasks",
            hint="Give a classic session, or the URL of the cluster's master.",
        )
    with map_errors():
        found = given.sparkContext
        if found._jsc is None or found._jsc.sc().isStopped():
            raise Unavailable(
                "the Spark session that was given is stopped",
                hint="Give one that runs, or leave spark= out to have one started.",
            )
    return found


def prepare() -> Path | None:
    """Make the class cache by a training run (about half a minute); None where the JVM has none.

    A cache that fits is left alone; one that does not is made again.
    """
    jvm = find_jvm()
    command = gateway.java_command(jvm)
    path = class_cache.cache_path(jvm, command)
    if path is None or (path.is_file() and class_cache.is_accepted(path, command)):
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        made = Path(folder) / "cache.aot"
        _train(made)
        if not (made.is_file() and class_cache.is_accepted(made, command)):
            return None
        made.replace(path)
    class_cache.remove_others(path)
    return path


def _active_context() -> SparkContext | None:
    if "pyspark" not in sys.modules:
        return None  # and it is better imported while the JVM starts
    from pyspark import SparkContext

    active = SparkContext._active_spark_context
    if active is not None and not _is_alive(active):
        _forget(active)
        return None
    return active


def _is_alive(active: SparkContext) -> bool:
    """Whether the JVM of a context is alive: it may have been killed since."""
    try:
        active._jsc.sc().isStopped()
    except Exception:  # of the socket, of Py4J, or of what is left of either
        return False
    return True


def _forget(dead: SparkContext) -> None:
    """Let pyspark know nothing of a JVM that is gone, so that another can be started."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    with suppress(Exception):
        dead.stop()
    with SparkContext._lock:
        SparkContext._active_spark_context = None
        SparkContext._gateway = None
        SparkContext._jvm = None
    SparkSession._instantiatedSession = None
    SparkSession._activeSession = None


def _start(options: SparkOptions) -> SparkContext:
    started = gateway.start(_settings(options), options.memory)
    made = _connect(options, started)
    _keep_quiet_at_its_end(made)
    # The JVM stops Spark itself when it is let go; to wait for that would take a second.
    atexit.register(started.let_go)
    return made


def _keep_quiet_at_its_end(made: SparkContext) -> None:
    """Let pyspark write no traceback when the JVM is gone: whoever asks it for something is told.

    It would come from the server that takes sums of tasks, which is in the middle of a read then.
    """
    server: Any = made._accumulatorServer
    tell = server.handle_error

    def handle_error(request: Any, address: Any) -> None:
        if not isinstance(sys.exception(), (EOFError, ConnectionError)):
            tell(request, address)

    server.handle_error = handle_error


def _connect(options: SparkOptions, started: gateway.Gateway) -> SparkContext:
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


def _build(options: SparkOptions) -> SparkContext:
    """A new context, or the one that is active."""
    from pyspark import SparkConf, SparkContext

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    _log_no_raised_errors()
    with map_errors():
        return SparkContext.getOrCreate(SparkConf().setAll(list(_settings(options).items())))


def _log_no_raised_errors() -> None:
    """What a query does wrong is raised, and so is that the JVM is gone; both would be logged as
    well, with all of the trace."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True
    for name in ("", "py4j.java_gateway", "py4j.clientserver"):  # Py4J writes to the root as well
        logging.getLogger(name).addFilter(_is_no_lost_jvm)


def _is_no_lost_jvm(record: logging.LogRecord) -> bool:
    error = record.exc_info[1] if record.exc_info else None
    by_py4j = record.name.startswith("py4j.")
    return type(error).__name__ != "Py4JNetworkError" and not (
        by_py4j and isinstance(error, OSError)
    )


def _settings(options: SparkOptions) -> dict[str, str]:
    place = LOOPBACK if options.is_local else {}
    runs_ours = os.environ.get("PYSPARK_PYTHON", sys.executable) == sys.executable
    workers = PRELOADING if options.is_local and runs_ours else {}
    master = options.master or "local[*]"
    return {
        "spark.app.name": "calque",
        **QUIET,
        **place,
        **workers,
        **options.settings,
        "spark.master": master,
    }


def _train(output: Path) -> None:
    """Run what sessions run first, in a JVM that writes down what it loaded."""
    if _active_context() is not None:
        raise Unsupported("the class cache cannot be made while a session is open in this process")
    from pyspark import SparkContext

    options = SparkOptions(master="local[2]")
    started = gateway.start(_settings(options), options.memory, train=output)
    made = _connect(options, started)
    made.parallelize([1, 2], 2).map(abs).collect()
    session().range(8).selectExpr("sum(id)").collect()
    made.stop()
    started.stop(patience=180)
    SparkContext._gateway = None
