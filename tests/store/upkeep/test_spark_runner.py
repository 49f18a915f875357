"""The scan as Spark tasks gives, bit for bit, what it gives in this process."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress

import psutil
import pytest

from calque.spark.session import SparkOptions
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
