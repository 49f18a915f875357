"""Where a scan runs: in this process, in one beside it, or from a million segments on as tasks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal, NamedTuple, get_args

from calque.errors import InvalidInput
from calque.store.metabase.engine.database import Database
from calque.store.metabase.scan import Snapshot, open_snapshot
from calque.store.upkeep.process_runner import ProcessRunner
from calque.store.upkeep.scan import LocalRunner, Runner

EngineName = Literal["auto", "local", "process", "spark"]

PROCESS_FROM = 50_000
"""Segments; a smaller scan is over before another process has started."""

SPARK_FROM = 1_000_000
"""Segments; below it a JVM would take longer to start than the scan takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanOptions:
    """Which engine runs a scan. ``master``: of a Spark cluster; without it this machine's cores.

    ``range_rows``: rows of a range, where the usual number does not suit.
    """

    engine: EngineName = "auto"
    master: str | None = None
    range_rows: int | None = None

    def __post_init__(self) -> None:
        if self.engine not in get_args(EngineName):
            raise InvalidInput(f"{self.engine!r} is no engine: auto, local, process or spark")
        if self.range_rows is not None and self.range_rows < 1:
            raise InvalidInput("a range has at least one row")


class OpenScan(NamedTuple):
    """A snapshot and who reads it."""

    snapshot: Snapshot
    runner: Runner


@contextmanager
def open_scan(database: Database, options: ScanOptions | None = None) -> Iterator[OpenScan]:
    """A snapshot for the length of a ``with`` block, and the engine that suits its size."""
    options = options or ScanOptions()
    engine = options.engine
    if engine in ("auto", "local"):
        with open_snapshot(database) as snapshot:
            engine = _choose(engine, snapshot.rows)
            if engine == "local":
                yield OpenScan(snapshot, LocalRunner())
                return
    # Another snapshot, which other processes can read, too.
    with open_snapshot(database, shared=True) as snapshot:
        yield OpenScan(snapshot, ProcessRunner() if engine == "process" else _spark(options))


def _choose(asked: EngineName, rows: int) -> EngineName:
    if asked != "auto" or rows < PROCESS_FROM:
        return "local"
    return "spark" if rows >= SPARK_FROM and _has_spark() else "process"


def _has_spark() -> bool:
    return find_spec("pyspark") is not None


def _spark(options: ScanOptions) -> Runner:
    # Loaded late: most stores never need it.
    from calque.spark.session import SparkOptions
    from calque.store.upkeep.spark_runner import SparkRunner

    return SparkRunner(SparkOptions(master=options.master))
