"""Trees on Spark: on a local session, and on a cluster of two machines one of which is killed."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from itertools import count, takewhile
from pathlib import Path

import pytest

import calque
from calque.errors import CalqueError, InvalidInput
from calque.operator import Operator
from calque.operator.services.fs.marker import is_temporary
from calque.spark.session import SparkOptions, context
from calque.transfer.api import PreparedRun
from calque.transfer.model import KeyRange, Row
from calque.transfer.report.report_file import read_report
from calque.transfer.request.options import TreeOptions
from calque.transfer.request.tree_request import TreeRequest
from calque.transfer.run.cluster import SpanTask
from tests.operator.services.s3.server import make_bucket
from tests.servers.seaweedfs import S3Server
from tests.servers.spark_cluster import spark_cluster
from tests.transfer.conftest import MakeTree, files_of, objects_of, s3_options

DRIVER = "127.0.0.3"
"""Where executors find the driver: a third machine."""
SETTINGS = """
[spark.settings]
"spark.executor.memory" = "512m"
"spark.executor.extraJavaOptions" = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
"spark.scheduler.minRegisteredResourcesRatio" = "1.0"
"spark.scheduler.maxRegisteredResourcesWaitingTime" = "120s"
"spark.python.task.killTimeout" = "100ms"
"""


LOST = """
import sys
class Lost:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "calque":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Lost())
"""
"""A Python that has no calque."""


def test_no_secret_travels() -> None:
    """What goes to an executor holds neither keys nor tokens, given as options or not."""
    request = TreeRequest(
        kind="cp",
        sources=["s3://a/x/"],
        target="s3://b/y/",
        options=TreeOptions(),
        source_options={"secret_access_key": "SECRET-1", "access_key_id": "SECRET-2"},
        target_options={"session_token": "SECRET-3", "region": "eu-west-1"},
    )
    task = SpanTask(request.to_json(), 0, KeyRange("a", "b"), 10, 4)
    packed = pickle.dumps(task) + json.dumps(request.to_json()).encode()
    assert b"SECRET" not in packed
    assert b"eu-west-1" in packed


def test_local_session(make_tree: MakeTree, tmp_path: Path) -> None:
    """The same report as by threads: each object once; deletes come last, from the driver."""
    files = {f"d{number % 9}/{number:04d}": b"x" * (number % 7) for number in range(1500)}
    source = make_tree("source", files)
    target = make_tree("target", {"d1/old": b"old"})
    report = calque.sync_tree(
        f"{source}/", target, delete=True, spark="local[2]", max_delete="100%", concurrent=8
    )
    assert report.ok, report.problems
    assert report.totals.of("copied").objects == len(files)
    assert report.totals.of("deleted").objects == 1
    assert report.totals.listed.objects == len(files)
    assert files_of(target) == files


def test_work_is_claimed_not_dealt(
    make_tree: MakeTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One range at first, for there is no more to see; then more tasks than cores, three a core and
    more, so that whoever is quick takes another. Each object is copied once."""
    folder = make_tree(
        "site", {"sitecustomize.py": b"from calque.transfer.run import lister\nlister._PAGE = 20\n"}
    )
    spark = context(options=SparkOptions(master="local[2]"))
    monkeypatch.setitem(spark.environment, "PYTHONPATH", str(folder))
    files = {f"{number:04}": b"" for number in range(2500)}
    rows: list[Row] = []
    source = make_tree("source", files)
    report = calque.copy_tree(f"{source}/", tmp_path / "to", spark="local[2]", on_event=rows.append)
    assert report.ok, report.problems
    assert sorted(row.path for row in rows) == sorted(files)
    tracker = spark.statusTracker()
    asked = max(tracker.getJobIdsForGroup())  # executors, for their versions: of no group
    jobs = takewhile(bool, (tracker.getJobInfo(number) for number in count(asked + 1)))
    stages = [tracker.getStageInfo(each) for job in jobs if job for each in job.stageIds]
    tasks = [stage.numTasks for stage in stages if stage is not None]
    looked, *rounds = tasks
    assert looked == 1
    assert 6 <= max(rounds) <= 8, tasks


def test_operators_stay_here(make_tree: MakeTree, tmp_path: Path) -> None:
    """What executors could not open is refused before any work: operators, memory."""
    source = make_tree("source", {"a": b"x"})
    with pytest.raises(InvalidInput, match="cannot be opened by executors"):
        calque.copy_tree(Operator.from_uri(source), tmp_path / "x", spark="local[2]")
    with pytest.raises(InvalidInput, match="cannot be opened by executors"):
        calque.copy_tree(f"{source}/", "memory://x/", spark="local[2]")


@pytest.mark.parametrize(
    ("site", "said"),
    [
        ("import calque._version as it\nit.__version__ = '0.0.1'\n", "executors have calque 0.0.1"),
        (
            LOST,
            "has no 'calque'",
        ),
    ],
)
def test_executors_of_another_kind_are_told_by_name(
    make_tree: MakeTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, site: str, said: str
) -> None:
    """Another version, or none: refused before anything is written."""
    source = make_tree("source", {"a": b"x"})
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(site)
    spark = context(options=SparkOptions(master="local[2]"))
    monkeypatch.setitem(spark.environment, "PYTHONPATH", str(folder))
    with pytest.raises(CalqueError, match=said):
        calque.copy_tree(f"{source}/", tmp_path / "to", spark="local[2]")
    assert not (tmp_path / "to").exists()


_SCRIPT = """
import json, sys
import calque
from calque.transfer.api import PreparedRun
from calque.transfer.request.tree_request import TreeRequest
from calque.transfer.request.keywords import options_from
told = json.loads(sys.argv[1])
request = TreeRequest(kind="cp", sources=[told["source"]], target=told["target"],
    options=options_from("cp", told["options"]), report=told["report"])
try:
    print(json.dumps(PreparedRun(request).run().to_json()))
except calque.errors.CalqueError as error:
    print(json.dumps({"error": type(error).__name__, "message": str(error)}))
"""


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_an_executor_is_killed(tmp_path: Path, seaweed: S3Server) -> None:
    """On a cluster: credentials are found by executors, one of them dies midway, and every object
    is there and has one row; a folder of the driver's own is refused."""
    make_bucket(seaweed, "cluster")
    options = {**s3_options(seaweed), "key_order": True}
    wanted = {f"{number:05d}": b"x" for number in range(3000)}
    source = Operator.from_uri("s3://cluster/from", **options)
    writers = [
        threading.Thread(
            target=lambda part=part: [source.write(f"{n:05d}", b"x") for n in range(part, 3000, 8)]
        )
        for part in range(8)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    (tmp_path / "calque.toml").write_text(SETTINGS)
    environment = {**seaweed.environment, "AWS_ENDPOINT_URL_S3": seaweed.endpoint}
    with spark_cluster([environment, environment]) as cluster:
        driver = {
            **os.environ,
            **environment,
            "SPARK_LOCAL_IP": DRIVER,
            "XDG_STATE_HOME": str(tmp_path / "state"),
            "CALQUE_CONFIG": str(tmp_path / "calque.toml"),
        }

        def start(source: str, target: str) -> subprocess.Popen[str]:
            told = {
                "source": source,
                "target": target,
                "options": {"spark": cluster.master, "concurrent": 4},
                "report": str(tmp_path / "report.jsonl"),
            }
            return subprocess.Popen(
                [sys.executable, "-c", _SCRIPT, json.dumps(told)],
                env=driver,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )

        (tmp_path / "private").mkdir()
        private = start(f"{tmp_path}/private/", "s3://cluster/never/")
        told, errors = private.communicate(timeout=400)
        assert "shared-fs" in told, errors[-2000:]
        process = start("s3://cluster/from/", "s3://cluster/to/")
        target = Operator.from_uri("s3://cluster/to", **options)
        while process.poll() is None and sum(1 for _ in target.list()) < 1100:
            time.sleep(0.05)
        for pid in cluster.executors(1)[:1]:
            os.kill(pid, signal.SIGKILL)
        told, errors = process.communicate(timeout=400)
        assert process.returncode == 0, errors[-3000:]
    report = json.loads(told)
    assert report.get("exit_code") == 0, told
    assert objects_of(target) == wanted
    assert sorted(row.path for row in read_report(tmp_path / "report.jsonl")) == sorted(wanted)


def test_a_stop_does_not_wait_for_tasks(
    make_tree: MakeTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks that are at something long are given up soon after; the same command goes on, and each
    object has one row."""
    files = {f"{number:02}": b"x" for number in range(30)}
    source = make_tree("source", files)
    spark = context(options=SparkOptions(master="local[2]"))
    monkeypatch.setitem(spark.environment, "CALQUE_FAULT", "tree.told@10:pause=500")
    request = TreeRequest(
        kind="cp", sources=[f"{source}/"], target=str(tmp_path / "to"),
        options=TreeOptions(spark="local[2]"), report=str(tmp_path / "rows.jsonl"),
    )  # fmt: skip
    first = PreparedRun(request)

    def stop() -> None:
        while not (tmp_path / "to").exists() or len(os.listdir(tmp_path / "to")) < 5:
            time.sleep(0.05)
        first.stop()

    threading.Thread(target=stop, daemon=True).start()
    stopped = first.run()
    assert stopped.exit_code == 130
    monkeypatch.delitem(spark.environment, "CALQUE_FAULT")
    assert PreparedRun(request).run().exit_code == 0
    # A process that was given up may have left a file aside, which a sweep finds.
    found = files_of(tmp_path / "to")
    assert {path: data for path, data in found.items() if not is_temporary(path)} == files
    assert sorted(row.path for row in read_report(tmp_path / "rows.jsonl")) == sorted(files)
