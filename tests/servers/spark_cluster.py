"""A standalone Spark cluster from the pyspark wheel: a master and workers, each a JVM of its own.

Every worker listens on a loopback address of its own (127.0.0.1, 127.0.0.2 …): to Spark they are
different machines, so that a speculative twin of a task may run beside it. Executors, and the
Python processes in them, have the environment of their worker: a worker can be made slow or weak
by a fault point, and the same calque is found by PYTHONPATH.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from calque.errors import MissingExtra
from calque.spark import class_cache, gateway
from calque.spark.java import Jvm, find_jvm
from tests.servers.process import HOST, ServerProcess, free_ports

_SCALA = "2.13"
_START_SECONDS = 200.0
"""JVMs that start beside others on a busy machine have taken more than a minute."""
_JAVA = """#!/bin/sh
# Spark asks for a module that the packaged runtime was built without, and that it can do without.
for argument do
  shift
  [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


@dataclass(frozen=True, slots=True)
class SparkCluster:
    """A running cluster: the URL of its master, a Java that Spark's own scripts can use."""

    master: str
    java_home: Path
    workers: tuple[ServerProcess, ...]

    def executors(self, worker: int) -> list[int]:
        """The process ids of a worker's executors: JVMs, which Python processes hang on."""
        return _children_named(self.workers[worker].pid, "java")


@contextmanager
def spark_cluster(
    workers: Sequence[Mapping[str, str]] = ({}, {}), *, cores: int = 1, memory: str = "700m"
) -> Iterator[SparkCluster]:
    """Start a master and a worker for each environment given; stop them and drop their files."""
    folder = Path(tempfile.mkdtemp(prefix="calque-cluster-"))
    jvm = find_jvm()
    home = _java_home(folder, jvm)
    (port,) = free_ports(1)
    url = f"spark://{HOST}:{port}"
    try:
        with ExitStack() as running:
            master = _daemon(jvm, home, folder / "master", _on(HOST), _master(port))
            running.callback(master.stop)
            master.wait_until(lambda: _listens(port), seconds=_START_SECONDS)
            started = []
            for number, extra in enumerate(workers):
                place, host = folder / f"worker-{number}", f"127.0.0.{number + 1}"
                command = _worker(host, url, place, cores, memory)
                started.append(_daemon(jvm, home, place, {**_on(host), **extra}, command))
                running.callback(started[-1].stop)
            for number, worker in enumerate(started):
                registered = partial(_registered, folder / f"worker-{number}" / "log")
                worker.wait_until(registered, seconds=_START_SECONDS)
            yield SparkCluster(url, home, tuple(started))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _daemon(
    jvm: Jvm, home: Path, folder: Path, extra: Mapping[str, str], command: list[str]
) -> ServerProcess:
    folder.mkdir()
    java = gateway.java_command(jvm)
    environment = {
        **os.environ,
        "JAVA_HOME": str(home),
        "SPARK_HOME": str(gateway.spark_home()),
        "SPARK_SCALA_VERSION": _SCALA,
        "SPARK_LOCAL_DIRS": str(folder),
        **extra,
    }
    cached = class_cache.jvm_options(class_cache.cache_path(jvm, java))
    return ServerProcess(
        [*java, *cached, "-Xmx256m", *command], log=folder / "log", env=environment, cwd=folder
    )


def _on(host: str) -> dict[str, str]:
    """Listen there and nowhere else, the pages for people too."""
    return {"SPARK_LOCAL_IP": host}


def _master(port: int) -> list[str]:
    own = ["--host", HOST, "--port", str(port), "--webui-port", "0"]
    return ["org.apache.spark.deploy.master.Master", *own]


def _worker(host: str, url: str, folder: Path, cores: int, memory: str) -> list[str]:
    own = ["--host", host, "--webui-port", "0", "--work-dir", str(folder)]
    size = ["--cores", str(cores), "--memory", memory]
    return ["org.apache.spark.deploy.worker.Worker", *own, *size, url]


def _java_home(folder: Path, jvm: Jvm) -> Path:
    """The runtime, with a ``java`` in front that leaves out what the runtime has not."""
    home = folder / "java"
    (home / "bin").mkdir(parents=True)
    for entry in jvm.home.iterdir():
        if entry.name != "bin":
            (home / entry.name).symlink_to(entry)
    java = home / "bin" / "java"
    java.write_text(_JAVA.format(java=jvm.java))
    java.chmod(0o755)
    return home


def _registered(log: Path) -> bool:
    return "Successfully registered with master" in log.read_text()


def _children_named(pid: int, name: str) -> list[int]:
    try:
        import psutil
    except ImportError as missing:
        raise MissingExtra.of("dev", "looking at the executors of a cluster") from missing
    found = []
    for child in psutil.Process(pid).children():
        with suppress(psutil.NoSuchProcess):  # it may end at any moment
            if child.name() == name:
                found.append(child.pid)
    return found


def _listens(port: int) -> bool:
    socket.create_connection((HOST, port), timeout=1).close()
    return True
