"""One scan of the segments serves any set of observers.

An observer is asked five things: ``start`` before anything is read; ``fork`` for each range, maybe
in another process; ``process`` of the fork for each batch of rows; ``join`` with what the fork of a
range found; ``finish`` when every row of the snapshot was seen. A range counts once, whoever read
it and however often. If one row is missing or too many nothing is finished, and nothing comes of
the run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from calque import faults
from calque.errors import Aborted, IntegrityError
from calque.store.metabase.scan import Range, Reader, Snapshot, SnapshotSource

Batch = Mapping[str, Sequence[Any]]
"""Columns of some rows, by name."""

Tell = Callable[[int, int], None]
"""Hears how many rows of how many were read."""

Over = Callable[[], bool]
"""Whether there is no time left."""


class Fork(Protocol):
    """What an observer sees of one range."""

    def process(self, batch: Batch) -> None:
        """Look at some rows."""

    def result(self) -> Any:
        """What was found; it travels back to the observer."""


class Observer(Protocol):
    """Somebody who wants to see every segment once. It travels to tasks before it has joined."""

    columns: tuple[str, ...]

    def start(self, snapshot: Snapshot) -> None: ...

    def fork(self) -> Fork: ...

    def join(self, result: Any) -> None: ...

    def finish(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ScanJob:
    """What a task needs besides its range."""

    source: SnapshotSource
    observers: tuple[Observer, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        wanted = {name for each in self.observers for name in each.columns}
        return tuple(sorted(wanted)) or ("position",)


@dataclass(frozen=True, slots=True)
class RangeResult:
    """What the forks of one range found."""

    number: int
    rows: int
    results: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class ScanReport:
    """How a scan went, and of which snapshot."""

    rows: int
    ranges: int
    seconds: float
    snapshot: str
    taken_at: int
    engine: str


class Runner(Protocol):
    """Reads ranges, in this process or in tasks; a range may come twice."""

    name: str

    def run(
        self, snapshot: Snapshot, job: ScanJob, ranges: Sequence[Range]
    ) -> Iterable[RangeResult]: ...


class LocalRunner:
    """Range after range in this process, without a JVM."""

    name = "local"

    def run(
        self, snapshot: Snapshot, job: ScanJob, ranges: Sequence[Range]
    ) -> Iterator[RangeResult]:
        with snapshot.reader() as reader:
            for each in ranges:
                yield scan_range(reader, job, each)


def scan_range(reader: Reader, job: ScanJob, wanted: Range) -> RangeResult:
    """Read a range and show it to a fork of each observer."""
    forks = [each.fork() for each in job.observers]
    columns, rows = job.columns, 0
    for some in reader.read(wanted, columns):
        rows += len(some)
        batch = dict(zip(columns, zip(*some, strict=True), strict=True))
        for fork in forks:
            fork.process(batch)
    faults.point("scan.range")
    return RangeResult(wanted.number, rows, tuple(fork.result() for fork in forks))


def run_scan(
    snapshot: Snapshot,
    observers: Sequence[Observer],
    *,
    runner: Runner | None = None,
    ranges: Sequence[Range] | None = None,
    tell: Tell | None = None,
    over: Over = lambda: False,
) -> ScanReport:
    """Show every segment of the snapshot to the observers, and finish them.

    IntegrityError when the rows are not those that the snapshot counts, Unavailable when the
    snapshot was lost meanwhile, Aborted when ``over`` said so: then no observer is finished.
    """
    runner, started = runner or LocalRunner(), time.monotonic()
    ranges = snapshot.cut() if ranges is None else ranges
    job = ScanJob(snapshot.source, tuple(observers))
    for observer in observers:
        observer.start(snapshot)
    seen: dict[int, int] = {}
    for found in runner.run(snapshot, job, ranges):
        if found.number in seen:
            continue
        seen[found.number] = found.rows
        for observer, result in zip(observers, found.results, strict=True):
            observer.join(result)
        if tell is not None:
            tell(sum(seen.values()), snapshot.rows)
        if over():
            raise Aborted("the scan was stopped: nothing was done with what was found")
    _require_all(snapshot, ranges, seen)
    for observer in observers:
        observer.finish()
    return ScanReport(
        rows=snapshot.rows,
        ranges=len(ranges),
        seconds=time.monotonic() - started,
        snapshot=snapshot.name,
        taken_at=snapshot.taken_at,
        engine=runner.name,
    )


def sample_scan(snapshot: Snapshot, observers: Sequence[Observer], ranges: Sequence[Range]) -> int:
    """Show some ranges only; how many rows that were. For estimates, and for nothing else."""
    job = ScanJob(snapshot.source, tuple(observers))
    rows = 0
    for found in LocalRunner().run(snapshot, job, ranges):
        rows += found.rows
        for observer, result in zip(observers, found.results, strict=True):
            observer.join(result)
    return rows


def _require_all(snapshot: Snapshot, ranges: Sequence[Range], seen: Mapping[int, int]) -> None:
    faults.point("scan.counted")
    snapshot.require()
    rows = sum(seen.values())
    if rows != snapshot.rows or len(seen) != len(ranges):
        raise IntegrityError(
            f"the scan saw {rows} segments in {len(seen)} of {len(ranges)} ranges, its snapshot "
            f"has {snapshot.rows}: nothing was done with what was found"
        )
