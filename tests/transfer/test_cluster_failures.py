"""Trees on a cluster of two machines, one of which falls asleep: twins, lost executors, a dead
driver. Each object is right, each has one row, and nothing is left."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from calque.operator.services.fs.marker import is_temporary
from calque.transfer.report.report_file import read_report
from tests.servers.spark_cluster import SparkCluster, spark_cluster
from tests.transfer.conftest import MakeTree, files_of

GOOD, SLOW = 0, 1
DRIVER = "127.0.0.3"
"""Where executors find the driver: a third machine."""
COUNT = 500
ASLEEP = "tree.told@30:pause=120"
"""After so many copies, the rows of which nobody has heard of yet."""
PAGES = "from calque.transfer.run import lister\nlister._PAGE = 50\n"
"""So that small trees become several tasks."""
SETTINGS = """
[spark.settings]
"spark.executor.memory" = "512m"
"spark.executor.extraJavaOptions" = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"spark.scheduler.minRegisteredResourcesRatio" = "1.0"
"spark.scheduler.maxRegisteredResourcesWaitingTime" = "120s"
"spark.python.task.killTimeout" = "100ms"
"spark.speculation" = "true"
"spark.speculation.interval" = "50ms"
"spark.speculation.multiplier" = "3"
"spark.speculation.quantile" = "0.1"
"spark.speculation.minTaskRuntime" = "4s"
"spark.speculation.task.duration.threshold" = "4s"
"""
_SCRIPT = """
import json, sys
from calque.errors import CalqueError
from calque.transfer.api import PreparedRun
from calque.transfer.request.keywords import options_from
from calque.transfer.request.tree_request import TreeRequest
for line in sys.stdin:
    told = json.loads(line)
    request = TreeRequest(kind=told["kind"], sources=[told["source"]], target=told["target"],
        options=options_from(told["kind"], told["options"]), report=told["report"])
    try:
        answer = PreparedRun(request).run().to_json()
    except CalqueError as error:
        answer = {"error": type(error).__name__, "message": str(error)}
    print(json.dumps(answer), flush=True)
"""

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]
"""JVMs of five kinds start one after the other, which takes its time on a busy machine."""


class Driver:
    """A process that holds the driver, and runs one request after the other on one session."""

    def __init__(self, cluster: SparkCluster, folder: Path, state: Path) -> None:
        self._cluster = cluster
        config = state / "calque.toml"
        config.write_text(SETTINGS)
        self.process = subprocess.Popen(
            [sys.executable, "-c", PAGES + _SCRIPT],
            cwd=folder,
            env={
                **os.environ,
                "SPARK_LOCAL_IP": DRIVER,
                "XDG_STATE_HOME": str(state),
                "CALQUE_CONFIG": str(config),
            },
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=open(state / "log", "a"),  # noqa: SIM115
            text=True,
        )

    def ask(self, kind: str, source: str, target: Path, report: Path, **options: object) -> None:
        told = {
            "kind": kind,
            "source": source,
            "target": str(target),
            "report": str(report),
            "options": {"spark": self._cluster.master, "concurrent": 2, "fsync": "none", **options},
        }
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(told) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("state")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    """Two machines; the Python of one falls asleep in the middle of its tasks."""
    site = tmp_path_factory.mktemp("site")
    (site / "sitecustomize.py").write_text(PAGES)
    paths = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
    found = {"PYTHONPATH": paths}
    with spark_cluster([found, {**found, "CALQUE_FAULT": ASLEEP}]) as running:
        yield running


@pytest.fixture(scope="module")
def driver(cluster: SparkCluster, state: Path) -> Iterator[Driver]:
    """One session for these tests."""
    (state / "cwd" / "data").mkdir(parents=True)
    made = Driver(cluster, state / "cwd", state)
    yield made
    made.close()


def wait_for(driver: Driver, condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 200
    while not condition():
        assert driver.process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.02)


def second_attempts(cluster: SparkCluster) -> int:
    """How many tasks an executor of the good machine was given that another had begun."""
    folder = cluster.workers[GOOD].log.parent
    logs = [log.read_text(errors="replace") for log in folder.glob("app-*/*/stderr")]
    return sum(len(re.findall(r"Running task \d+\.[1-9]\d* in stage", log)) for log in logs)


def sleepers(cluster: SparkCluster) -> list[int]:
    """Executors of the slow machine that have a process which is asleep."""
    import psutil

    return [
        pid
        for pid in cluster.executors(SLOW)
        if any(
            child.status() == psutil.STATUS_STOPPED
            for child in psutil.Process(pid).children(recursive=True)
        )
    ]


@pytest.fixture
def tree(make_tree: MakeTree) -> tuple[Path, dict[str, bytes]]:
    files = {f"d{number % 3}/{number:04d}": b"x" * (number % 9) for number in range(COUNT)}
    return make_tree("source", files), files


def whole_files(folder: Path) -> dict[str, bytes]:
    """All but what a process that was killed has left, which a sweep finds."""
    found = files_of(folder).items()
    return {path: data for path, data in found if not is_temporary(path.rpartition("/")[2])}


def assert_told_once(report: Path, files: dict[str, bytes]) -> None:
    assert sorted(row.path for row in read_report(report)) == sorted(files)


def test_folders_that_executors_do_not_see(driver: Driver, tmp_path: Path) -> None:
    """A folder of the driver's machine is refused unless it is said to be everywhere; then it is
    looked for by every executor, and one that is another folder there is found."""
    (tmp_path / "from").mkdir()
    driver.ask("cp", f"{tmp_path}/from/", tmp_path / "to", tmp_path / "r.jsonl")
    told = driver.answer()
    assert told["error"] == "InvalidInput", told
    assert "--shared-fs" in told["message"]
    driver.ask("cp", "/proc/self/cwd/data/", tmp_path / "to", tmp_path / "r.jsonl", shared_fs=True)
    told = driver.answer()
    assert "not every executor sees" in told.get("message", ""), told
    assert not (tmp_path / "to").exists()


def test_twins_of_a_move(
    driver: Driver,
    cluster: SparkCluster,
    tree: tuple[Path, dict[str, bytes]],
    tmp_path: Path,
) -> None:
    """A task sleeps when it has copied some; its twin does all of it: everything is at the target,
    nothing at the source, and each object has one row, which says that it was copied."""
    source, files = tree
    before = second_attempts(cluster)
    driver.ask("mv", f"{source}/", tmp_path / "to", tmp_path / "r.jsonl", shared_fs=True)
    told = driver.answer()
    assert told.get("exit_code") == 0, told
    assert second_attempts(cluster) > before, "no task had a twin"
    assert whole_files(tmp_path / "to") == files
    assert files_of(source) == {}
    assert_told_once(tmp_path / "r.jsonl", files)
    assert told["totals"]["copied"]["objects"] == COUNT
    assert {row.outcome for row in read_report(tmp_path / "r.jsonl")} == {"copied"}


def test_a_lost_executor(
    driver: Driver,
    cluster: SparkCluster,
    tree: tuple[Path, dict[str, bytes]],
    tmp_path: Path,
) -> None:
    """Killed in the middle of a task: another does it again, and each object has one row."""
    source, files = tree
    driver.ask("cp", f"{source}/", tmp_path / "to", tmp_path / "r.jsonl", shared_fs=True)
    wait_for(driver, lambda: bool(sleepers(cluster)))
    for pid in sleepers(cluster):
        os.kill(pid, signal.SIGKILL)
    told = driver.answer()
    assert told.get("exit_code") == 0, told
    assert whole_files(tmp_path / "to") == files
    assert_told_once(tmp_path / "r.jsonl", files)


def test_a_dead_driver(
    driver: Driver,
    cluster: SparkCluster,
    tree: tuple[Path, dict[str, bytes]],
    state: Path,
    tmp_path: Path,
) -> None:
    """Killed while tasks were copying: the same request goes on with the job in another driver, and
    at its end each object is there and has one row."""
    source, files = tree
    for number in range(2000):  # enough that it cannot be over before it is killed
        (source / f"more{number:04d}").write_bytes(b"")
        files[f"more{number:04d}"] = b""
    request = ("cp", f"{source}/", tmp_path / "to", tmp_path / "r.jsonl")
    driver.ask(*request, shared_fs=True)
    wait_for(driver, lambda: sum(1 for _ in (tmp_path / "to").rglob("*")) > 100)
    driver.process.kill()
    driver.process.wait()
    second = Driver(cluster, state, state)
    try:
        second.ask(*request, shared_fs=True)
        told = second.answer()
    finally:
        second.close()
    assert told.get("exit_code") == 0, told
    assert told["resumed"] is True
    assert whole_files(tmp_path / "to") == files
    assert_told_once(tmp_path / "r.jsonl", files)
