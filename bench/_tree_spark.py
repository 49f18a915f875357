"""Trees on a standalone Spark cluster of two workers, against threads and the best split."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.servers.seaweedfs import S3Server
from tests.servers.spark_cluster import spark_cluster

from bench import _s3
from bench.table import Row
from calque.operator import Operator
from calque.values import MIB

_BUCKET = f"s3://{_s3.BUCKET}"
_DRIVER = "127.0.0.3"
_SETTINGS = """
[spark.settings]
"spark.executor.memory" = "512m"
"spark.scheduler.minRegisteredResourcesRatio" = "1.0"
"spark.scheduler.maxRegisteredResourcesWaitingTime" = "120s"
"""
_SCRIPT = """
import json, sys, time
import calque
told = json.loads(sys.argv[1])
options = {"source_options": {"key_order": True}, "target_options": {"key_order": True}}
def run(source, target, **more):
    begun = time.perf_counter()
    report = calque.copy_tree(source, target, concurrent=told["concurrent"], **options, **more)
    assert report.ok, report.problems[:3] or report.error
    return time.perf_counter() - begun
spark = {"spark": told["master"]}
run(told["one"], told["to"] + "warm/", **spark)
print(json.dumps({
    "threads": run(told["small"], told["to"] + "threads/"),
    "spark": run(told["small"], told["to"] + "spark/", **spark),
    "huge": run(told["huge"], told["to"] + "huge/", **spark),
    "both": run(told["both"], told["to"] + "both/", **spark),
}))
"""


def on_spark(server: S3Server, count: int, scale: float) -> list[Row]:
    """After the start of everything; the best split is that of the work over two executors."""
    size = max(64, int(1024 * scale)) * MIB
    with Operator.from_uri(_BUCKET) as op:
        op.write("huge/object", (bytes(8 * MIB) for _ in range(size // (8 * MIB))))
    environment = {**server.environment, "AWS_ENDPOINT_URL_S3": server.endpoint}
    with tempfile.TemporaryDirectory() as folder, spark_cluster([environment] * 2) as cluster:
        config = Path(folder) / "calque.toml"
        config.write_text(_SETTINGS)
        told = {
            "master": cluster.master, "concurrent": _s3.CONCURRENT, "one": f"{_BUCKET}/one/",
            "small": f"{_BUCKET}/small/", "huge": f"{_BUCKET}/huge/", "to": f"{_BUCKET}/on-spark/",
            "both": [f"{_BUCKET}/small", f"{_BUCKET}/huge"],
        }  # fmt: skip
        own = {**os.environ, **environment, "SPARK_LOCAL_IP": _DRIVER, "CALQUE_CONFIG": str(config)}
        done = subprocess.run(
            [sys.executable, "-c", _SCRIPT, json.dumps(told)], env=own, stdout=subprocess.PIPE
        )
    if done.returncode:
        raise SystemExit("the trees on Spark failed")
    took = json.loads(done.stdout.splitlines()[-1])
    speed = took["threads"] / took["spark"]
    best = max(took["huge"], (took["huge"] + 2 * took["spark"]) / 2)
    share = took["both"] / best
    return [
        Row(
            f"Spark, {count} × 1 KB after start", f"{count / took['spark']:.0f}/s",
            f"threads {count / took['threads']:.0f}/s", speed, "at least 0.8", speed >= 0.8,
        ),
        Row(
            f"{size // MIB} MiB and {count} small, two executors", f"{took['both']:.1f} s",
            f"best split {best:.1f} s", share, "at most 1.3", share <= 1.3,
        ),
    ]  # fmt: skip
