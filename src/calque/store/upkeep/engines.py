"""Where a scan runs: in this process, or from a million segments on as Spark tasks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal, NamedTuple, get_args

from calque.errors import InvalidInput
from calque.store.metabase.engine.database import Database
from calque.store.metabase.scan import Snapshot, open_snapshot
from calque.store.upkeep.scan import LocalRunner, Runner

EngineName = Literal["auto", "local", "spark"]

SPARK_FROM = 1_000_000
"""Segments; below it a JVM would take longer to start than the scan takes."""

RANGES_A_CORE = 4
"""More ranges than cores, so that a slow one holds up little."""


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
            raise InvalidInput(f"{self.engine!r} is no engine: auto, local or spark")
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
    if options.engine == "spark":
        with open_snapshot(database, shared=True) as snapshot:
            yield OpenScan(snapshot, _spark(options))
        return
    with open_snapshot(database) as snapshot:
        if options.engine == "local" or snapshot.rows < SPARK_FROM or not _has_spark():
            yield OpenScan(snapshot, LocalRunner())
            return
    with open_snapshot(database, shared=True) as snapshot:
        yield OpenScan(snapshot, _spark(options))


def _has_spark() -> bool:
    return find_spec("pyspark") is not None


def _spark(options: ScanOptions) -> Runner:
    # Loaded late: most stores never need it.
    from calque.spark.session import SparkOptions
    from calque.store.upkeep.spark_runner import SparkRunner

    return SparkRunner(SparkOptions(master=options.master))
