"""The scan as Spark tasks gives, bit for bit, what it gives in this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import psutil
import pytest

from calque.spark.session import SparkOptions
from calque.store.upkeep import engines, spark_runner
from calque.store.upkeep.engines import ScanOptions, open_scan
from calque.store.upkeep.gc import GcOptions, collect_store
from calque.store.upkeep.scan import LocalRunner, run_scan
from calque.store.upkeep.spark_runner import SparkRunner
from tests.servers.spark_cluster import SparkCluster, spark_cluster
from tests.store.upkeep.kept_store import KeptStore
from tests.store.upkeep.observed import found, observers

SPARK = ScanOptions(engine="spark", master="local[2,4]", range_rows=4)


def test_both_engines_give_the_same(kept: KeptStore) -> None:
    """Filters, sums, injured segments and samples; from one snapshot, on each database."""
    for number in range(5):
        kept.upload(f"o{number}")
        kept.copy(f"o{number}", f"c{number}")
    with open_scan(kept.store.endpoint.database, SPARK) as (snapshot, runner):
        ranges = snapshot.cut(rows_each=4)
        here, there = observers(kept), observers(kept)
        run_scan(snapshot, here, runner=LocalRunner(), ranges=ranges)
        kept.upload("late")  # is in neither
        report = run_scan(snapshot, there, runner=runner, ranges=ranges)
    assert report.engine == "spark"
    assert found(here) == found(there)
    assert collect_store(kept.store, GcOptions(scan=SPARK)).scan.rows == report.rows + 3
    kept.check()


def test_ranges_are_joined_some_at_a_time(
    plain: KeptStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many there are, no more results wait in memory than those of one job."""
    monkeypatch.setattr(spark_runner, "MOST", 2)
    for number in range(5):
        plain.upload(f"o{number}")
    running: list[int] = []
    run_tasks = spark_runner.run_tasks

    def watched(spark: Any, items: Sequence[Any], *rest: Any, **named: Any) -> list[Any]:
        running.append(len(items))
        return run_tasks(spark, items, *rest, **named)

    monkeypatch.setattr(spark_runner, "run_tasks", watched)
    heard: list[tuple[int, int]] = []
    with open_scan(plain.store.endpoint.database, SPARK) as (snapshot, runner):
        ranges = snapshot.cut(rows_each=3)
        here, there = observers(plain), observers(plain)
        run_scan(snapshot, here, ranges=ranges)
        run_scan(
            snapshot, there, runner=runner, ranges=ranges,
            tell=lambda rows, _: heard.append((rows, len(running))),
        )  # fmt: skip
    assert found(here) == found(there)
    assert running == [2] * (len(ranges) // 2) + [1] * (len(ranges) % 2)
    assert len(ranges) == len(heard) > 4
    assert heard[0][1] == 1  # joined before the second job began


def test_large_stores_take_spark_by_themselves(
    plain: KeptStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From so many segments on, where PySpark is installed; without it a process does it."""
    for number in range(4):
        plain.upload(f"o{number}", 900)
    monkeypatch.setattr(engines, "PROCESS_FROM", 3)
    assert collect_store(plain.store).scan.engine == "process"
    monkeypatch.setattr(engines, "SPARK_FROM", 4)
    assert collect_store(plain.store).scan.engine == "spark"
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    assert collect_store(plain.store).scan.engine == "process"


ASLEEP = {"CALQUE_FAULT": "scan.range@2:pause=300"}


@pytest.fixture(scope="module")
def cluster() -> Iterator[SparkCluster]:
    """Two machines, one of which falls asleep in its second range, every time it is started."""
    with spark_cluster([{}, ASLEEP]) as running:
        yield running


def kill_sleeper(cluster: SparkCluster, done: threading.Event, killed: list[int]) -> None:
    """Kill executors of the sleeping machine as they fall asleep, with all that hangs on them."""
    while not done.wait(0.2):
        for executor in cluster.executors(1):
            with suppress(psutil.NoSuchProcess):
                children = psutil.Process(executor).children(recursive=True)
                if any(each.status() == psutil.STATUS_STOPPED for each in children):
                    for process in (psutil.Process(executor), *children):
                        process.kill()
                    killed.append(executor)


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_a_killed_executor_changes_nothing(
    kept: KeptStore, cluster: SparkCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its ranges are read again elsewhere; the result is that of this process."""
    for number in range(20):
        kept.upload(f"o{number}")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.3")
    settings = {"spark.executor.memory": "512m", "spark.task.maxFailures": "20"}
    runner = SparkRunner(SparkOptions(master=cluster.master, settings=settings))
    done, killed = threading.Event(), list[int]()
    killer = threading.Thread(target=kill_sleeper, args=(cluster, done, killed))
    killer.start()
    with open_scan(kept.store.endpoint.database, SPARK) as (snapshot, _):
        ranges = snapshot.cut(ranges=20)
        here, there = observers(kept), observers(kept)
        run_scan(snapshot, here, ranges=ranges)
        run_scan(snapshot, there, runner=runner, ranges=ranges)
    done.set()
    killer.join()
    assert found(here) == found(there)
    assert killed
