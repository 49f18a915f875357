"""Loads on a cluster of several machines: executors killed, tasks run twice, each row once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema

from tests.loader.loader import Place
from tests.loader.world import data_files, files_on_disk, ids, rows
from tests.servers.spark_cluster import SparkCluster, spark_cluster

GOOD, SLOW = 0, 1
"""The two machines: what the slow one has written it does not tell before it has slept."""
DRIVER = "127.0.0.3"
"""Where executors find the driver: a third machine."""
SLEEP = 120.0
ROWS = 7000
FILES = 10
PAD = "x" * 1000
SETTINGS = {
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.scheduler.maxRegisteredResourcesWaitingTime": "120s",
    "spark.python.task.killTimeout": "100ms",
}
SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "3",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.minTaskRuntime": "10s",
}
"""A twin starts late enough that the slow machine has written, cold and busy as it may be."""
OWN_SESSION = """
import json, sys
import calque
from calque.config import load_settings
from calque.spark.session import SparkOptions, session
stage, into, copy, settings, master, spark = json.loads(sys.argv[1])
own = session(options=SparkOptions(master=master, settings=spark))
settings = load_settings(flags=settings)
loaded = calque.load(stage, into, spark=own, settings=settings).to_json()
copied = calque.sql(copy, spark=own, settings=settings).to_json()
driver = own.conf.get("spark.driver.host")
print(json.dumps({"loaded": loaded, "copied": copied, "driver": driver}, default=str))
"""


pytestmark = pytest.mark.timeout(600)
"""JVMs of five kinds start one after the other, which takes its time on a busy machine."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[SparkCluster]:
    """Two machines, one of which falls asleep when its first task has written its rows."""
    asleep = {"CALQUE_FAULT": f"task.written@1:pause={SLEEP}"}
    with spark_cluster([{}, asleep]) as running:
        yield running


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[int]]:
    """Files large enough to become a task for each of two cores; every id in them."""
    stage = tmp_path_factory.mktemp("staged")
    for number in range(FILES):
        mine = range(number * ROWS, (number + 1) * ROWS)
        body = "".join(f"{one},{PAD}\n" for one in mine)
        (stage / f"f{number}.csv").write_text("id,pad\n" + body)
    return stage, list(range(FILES * ROWS))


@dataclass
class Driver:
    """A load in a process of its own, which holds the Spark driver."""

    process: subprocess.Popen[str]

    def report(self) -> dict[str, Any]:
        try:
            out, err = self.process.communicate(timeout=200)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        assert self.process.returncode == 0, err[-3000:]
        return dict(json.loads(out))


def by_session(place: Place, other: Place, stage: Path, cluster: SparkCluster) -> Driver:
    """``calque.load``, then a ``SELECT`` into another table, with the caller's own session."""
    flags = {"ledger.url": place.ledger}
    copy = (
        f"COPY INTO '{other.table}' FROM (SELECT id * 2, upper(pad) FROM '{stage}/') "
        "FILE_FORMAT = (TYPE = CSV PARSE_HEADER = TRUE)"
    )
    spark = {**SETTINGS, **SPECULATION}
    told = json.dumps([f"{stage}/", place.table, copy, flags, cluster.master, spark])
    return _driver([sys.executable, "-c", OWN_SESSION, told], place)


def by_command(place: Place, stage: Path, cluster: SparkCluster) -> Driver:
    """``calque load --spark spark://…``, the session configured by calque.toml."""
    config = place.folder / "calque.toml"
    lines = [f"{name!r} = {value!r}" for name, value in SETTINGS.items()]
    config.write_text("\n".join(["[spark.settings]", *lines, ""]))
    command = [sys.executable, "-m", "calque.cli", "load", f"{stage}/", "--into", place.table]
    command += ["--spark", cluster.master, "--ledger", place.ledger]
    return _driver([*command, "--config", str(config), "--json"], place)


def _driver(command: list[str], place: Place) -> Driver:
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=place.folder,
        env={**os.environ, "SPARK_LOCAL_IP": DRIVER},
    )
    return Driver(process)


def wait_for_sleeper(place: Place, cluster: SparkCluster, driver: Driver) -> set[str]:
    """Wait until both tasks have written and the slow one sleeps; names of their data files."""
    until = time.monotonic() + 200
    while time.monotonic() < until and driver.process.poll() is None:
        if sleeps(cluster) and len(found := files_on_disk(place)) >= 2:
            return found
        time.sleep(0.05)
    driver.process.kill()
    raise AssertionError(driver.process.communicate()[1][-3000:])


def sleeps(cluster: SparkCluster) -> bool:
    with suppress(psutil.NoSuchProcess):
        for executor in cluster.executors(SLOW):
            python = psutil.Process(executor).children(recursive=True)
            if any(one.status() == psutil.STATUS_STOPPED for one in python):
                return True
    return False


def assert_once(place: Place, expected: list[int], written: set[str]) -> None:
    """Each row once; of what was written, the sleeper's file is neither read nor there."""
    assert ids(place) == Counter(expected)
    assert len(written - data_files(place)) == 1
    assert files_on_disk(place) == data_files(place)
    left = [path for path in place.files() if path.rpartition("/")[2].startswith(".")]
    assert left == []


def test_an_executor_is_killed_midway(
    cluster: SparkCluster, staged: tuple[Path, list[int]], tmp_path: Path
) -> None:
    """The tasks of a killed executor are run elsewhere; what it had written counts nowhere."""
    stage, expected = staged
    place = Place(tmp_path, "delta", str(tmp_path / "ledger.db"))
    driver = by_command(place, stage, cluster)
    written = wait_for_sleeper(place, cluster, driver)
    (executor,) = cluster.executors(SLOW)
    os.kill(executor, signal.SIGKILL)
    report = driver.report()
    assert report["rows_loaded"] == len(expected)
    assert report["engine"] == "spark"
    assert_once(place, expected, written)


@pytest.mark.soak
def test_a_twin_overtakes_a_slow_task(
    cluster: SparkCluster, staged: tuple[Path, list[int]], tmp_path: Path
) -> None:
    """Speculation runs a slow task twice: the twin's rows count, the sleeper's file is removed.

    So it is where rows are only read and written, and where Spark SQL transforms them.
    """
    stage, expected = staged
    place = Place(tmp_path, "iceberg", str(tmp_path / "ledger.db"))
    other = Place(tmp_path / "other", "delta", place.ledger)
    schema = pa.schema([("id", pa.int64()), ("pad", pa.string())])
    DeltaTable.create(other.table, Schema.from_arrow(schema))
    driver = by_session(place, other, stage, cluster)
    loaded = wait_for_sleeper(place, cluster, driver)
    copied = wait_for_sleeper(other, cluster, driver)
    report = driver.report()
    assert report["driver"] == DRIVER
    for name in ("loaded", "copied"):
        assert report[name]["rows_loaded"] == len(expected)
    assert_once(place, expected, loaded)
    assert_once(other, [2 * one for one in expected], copied)
    assert rows(other).column("pad")[0].as_py() == PAD.upper()
