"""Huge objects on Spark: their parts are brought by several tasks, the driver opens and commits."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import calque
from calque.operator import Operator
from calque.operator.copy import copy_parts
from calque.spark.session import SparkOptions, context
from calque.transfer.model import Row
from tests.servers.proxy import Fault, FaultProxy, Reply
from tests.servers.seaweedfs import S3Server
from tests.servers.shared import shared_azurite
from tests.servers.spark_cluster import spark_cluster
from tests.transfer.conftest import objects_of, s3_options
from tests.transfer.killed_run import Child

MIB = 1024 * 1024
CONTENT = os.urandom(27 * MIB)
SPARK = "local[2,3]"
"""Two tasks at a time, each of which may fail twice."""


def sent_parts(proxy: FaultProxy) -> list[str]:
    sent = [each.target for each in proxy.log if each.method == "PUT"]
    numbers = [each.partition("partNumber=")[2].partition("&")[0] for each in sent]
    return [number for number in numbers if number not in ("", "10000")]


@pytest.fixture
def service(tree_bucket: S3Server, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Parts that are small; tasks find credentials where they run."""
    executors = context(options=SparkOptions(master=SPARK)).environment
    for name, value in tree_bucket.environment.items():
        monkeypatch.setenv(name, value)
        # Others may have started the session, before these were known.
        monkeypatch.setitem(executors, name, value)
    options = s3_options(tree_bucket)
    secrets = ("access_key_id", "secret_access_key")
    plain = {name: value for name, value in options.items() if name not in secrets}
    return {**plain, "threshold": 6 * MIB, "part_size": 5 * MIB}


def test_parts_are_brought_by_tasks(
    tree_bucket: S3Server, s3: Operator, service: dict[str, object]
) -> None:
    """The largest first; one task fails and brings its parts again; each object is right and has
    one row; no upload is left."""
    s3.write("from/huge", CONTENT)
    s3.write("from/first", CONTENT[: 9 * MIB])
    s3.write("from/small", b"small")
    rows: list[Row] = []
    with FaultProxy(tree_bucket.endpoint) as proxy:
        # Refused by the server, which no layer repeats: the task fails, and Spark runs it again.
        proxy.add(Fault(method="PUT", contains="partNumber=3&", reply=Reply(403, b"")))
        there = {**service, "endpoint_url": proxy.endpoint}
        report = calque.copy_tree(
            s3.location("from/"),
            s3.location("to/"),
            spark=SPARK,
            split_over=8 * MIB,
            source_options=there,
            target_options=there,
            on_event=rows.append,
        )
        assert report.ok, report.problems
        sent = sent_parts(proxy)
        uploads = [each for each in proxy.log if each.method == "POST" and "uploads" in each.target]
    assert set(sent) == {"1", "2", "3", "4", "5", "6"}
    assert sent.count("3") == 2
    begun = [each.target.partition("?")[0].rpartition("/")[2] for each in uploads]
    assert begun == ["huge", "first"], "the largest goes first"
    assert objects_of(Operator.from_uri(s3.location("to"), **s3_options(tree_bucket))) == {
        "first": CONTENT[: 9 * MIB],
        "huge": CONTENT,
        "small": b"small",
    }
    told = sorted((row.path, row.outcome, row.route) for row in rows)
    assert told == [(path, "copied", "server-side") for path in ("first", "huge", "small")]
    assert list(s3.leftovers("to/")) == []


@pytest.mark.soak
def test_a_driver_that_dies_is_gone_on_with(
    tmp_path: Path, tree_bucket: S3Server, s3: Operator, service: dict[str, object]
) -> None:
    """The upload stands in the journal before any part: whoever resumes, by threads, goes on."""
    s3.write("from/huge", CONTENT)
    with FaultProxy(tree_bucket.endpoint) as proxy:
        child = Child(
            tmp_path / "state",
            s3.location("from/"),
            s3.location("to/"),
            service={**service, "endpoint_url": proxy.endpoint},
            split_over=8 * MIB,
        )
        process = child.spawn(spark=SPARK)
        proxy.add(
            Fault(
                method="PUT",
                contains="partNumber=6&",
                hook=lambda exchange: process.kill(),
                drop=True,
                times=None,
            )
        )
        process.communicate(timeout=200)
        assert process.returncode == -signal.SIGKILL
        proxy.reset()
        child.finish()
        again = [each for each in proxy.log if each.method == "POST" and "uploads" in each.target]
        sent = sent_parts(proxy)
    assert again == []
    assert len(sent) < 6
    assert s3.read("to/huge") == CONTENT


def test_what_was_opened_can_be_filled_by_anybody(s3: Operator, tmp_path: Path) -> None:
    """In any order, twice, and not by all: the resume brings what is missing, and commits."""
    (tmp_path / "big").write_bytes(CONTENT)
    source = Operator.from_uri(tmp_path)
    copier = source.copier("big", "to", into=s3, stream=True, stream_parts=True, chunk=5 * MIB)
    opened = copier.open_parts()
    assert opened is not None
    for numbers in ([5, 2], [2], [6]):
        copied = copy_parts(source.service, s3.service, opened, numbers, concurrent=2)
        assert copied == sum(5 * MIB if number < 6 else 2 * MIB for number in numbers)
    assert not s3.exists("to")
    steps = list(source.resume(opened, into=s3))
    assert steps[0] == 12 * MIB
    assert sum(steps) == len(CONTENT)
    assert s3.read("to") == CONTENT
    small = Operator.from_uri("memory://")
    small.write("x", b"small")
    assert small.copier("x", "y", into=s3, stream=True).open_parts() is None


_DRIVER = """
import json, sys
import calque
told = json.loads(sys.argv[1])
reports = [
    calque.copy_tree(each["source"], each["target"], spark=told["master"], concurrent=4,
        split_over=told["split_over"], source_options=each["from"], target_options=each["to"])
    for each in told["copies"]
]
print(json.dumps([report.to_json() for report in reports]))
"""
_SETTINGS = """
[spark.settings]
"spark.executor.memory" = "512m"
"spark.scheduler.minRegisteredResourcesRatio" = "1.0"
"spark.scheduler.maxRegisteredResourcesWaitingTime" = "120s"
"""


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_two_machines(tree_bucket: S3Server, s3: Operator, tmp_path: Path) -> None:
    """On a cluster: inside S3, out of it into Azure and back; each part is brought by an executor,
    by both of them, and no upload is left."""
    azurite = shared_azurite()
    azurite.make_container("calquetest", "split")
    s3.write("from/huge", CONTENT)
    s3.write("from/small", b"small")
    environment = {**tree_bucket.environment, "AZURE_STORAGE_KEY": azurite.keys["calquetest"]}
    plain = {"region": tree_bucket.region, "key_order": False, "part_size": 5 * MIB}
    with FaultProxy(tree_bucket.endpoint) as proxy, spark_cluster([environment] * 2) as cluster:
        bucket = {**plain, "threshold": 6 * MIB, "endpoint_url": proxy.endpoint}
        container = {
            "account": "calquetest",
            "endpoint": azurite.endpoint("calquetest"),
            "part_size": 5 * MIB,
        }
        places = [s3.location("from/"), s3.location("to/"), "az://split/there/", s3.location("b/")]
        options = [bucket, bucket, container, bucket]
        copies = [
            {"source": places[one], "target": places[two], "from": options[one], "to": options[two]}
            for one, two in ((0, 1), (0, 2), (2, 3))
        ]
        told = {"master": cluster.master, "split_over": 8 * MIB, "copies": copies}
        (tmp_path / "calque.toml").write_text(_SETTINGS)
        done = subprocess.run(
            [sys.executable, "-c", _DRIVER, json.dumps(told)],
            env={
                **os.environ, **environment, "SPARK_LOCAL_IP": "127.0.0.3",
                "CALQUE_CONFIG": str(tmp_path / "calque.toml"),
            },
            capture_output=True, text=True, timeout=800,
        )  # fmt: skip
        folders = [worker.log.parent for worker in cluster.workers]
        logs = [
            "".join(log.read_text(errors="replace") for log in folder.glob("app-*/*/stderr"))
            for folder in folders
        ]
    assert done.returncode == 0, done.stderr[-3000:]
    reports = json.loads(done.stdout.splitlines()[-1])
    assert [report["exit_code"] for report in reports] == [0, 0, 0], reports
    assert [report["totals"]["copied"]["objects"] for report in reports] == [2, 2, 2]
    routes = [set(report["totals"]["routes"]) for report in reports]
    assert routes == [{"server-side"}, {"through_the_client"}, {"through_the_client"}]
    wanted = {"huge": CONTENT, "small": b"small"}
    for place in ("to", "b"):
        found = Operator.from_uri(s3.location(place), **s3_options(tree_bucket))
        assert objects_of(found) == wanted
    assert list(s3.leftovers("")) == []
    assert all("Running task" in log for log in logs)
