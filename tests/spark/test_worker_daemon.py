"""Workers are forked from a process that has imported what tasks need, and has no threads."""

from __future__ import annotations

import os
import subprocess
import sys

from calque.spark.session import PRELOADING, SparkOptions, context
from calque.spark.worker_daemon import PRELOADED, THREADLESS

LOOK = """
import sys
from calque.spark import worker_daemon
{before}
worker_daemon.manager = lambda: print(sorted(set(worker_daemon.PRELOADED) & set(sys.modules)))
worker_daemon.main()
"""


def _run(before: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", LOOK.format(before=before)],
        capture_output=True,
        encoding="latin-1",  # the daemon tells its port in bytes
        input="",
        env=os.environ | environment,
        timeout=120,
    )


def test_a_worker_has_its_modules_before_its_first_task() -> None:
    """A forked worker of a local session finds them imported, and the environment as it was."""
    spark = context(options=SparkOptions(master="local[2,2]"))
    (name,) = PRELOADING
    assert spark.getConf().get(name) == PRELOADING[name]

    def look(_: int) -> tuple[list[str], list[str], int]:
        loaded = [module for module in PRELOADED if module in sys.modules]
        kept = [name for name in THREADLESS if name in os.environ]
        return loaded, kept, os.getppid()

    # A function of this module travels by its value: it imports nothing by itself.
    look.__module__ = "__main__"
    ((loaded, kept, parent),) = spark.parallelize([0], 1).map(look).collect()
    assert loaded == list(PRELOADED)
    assert kept == [name for name in THREADLESS if name in os.environ]
    assert parent not in (1, os.getpid())


def test_what_is_imported_starts_no_thread() -> None:
    """All is imported, and nothing runs beside the thread that forks."""
    done = _run()
    assert done.stdout == f"{sorted(PRELOADED)}\n", done.stderr


def test_what_imports_print_is_no_port() -> None:
    """Output belongs to the protocol with the JVM: what a module prints goes to standard error."""
    done = _run("worker_daemon.PRELOADED = ('this',)")
    assert done.stdout == "['this']\n"
    assert "The Zen of Python" in done.stderr


def test_with_threads_the_own_daemon_of_pyspark_takes_over() -> None:
    """A process with threads does not fork: it becomes pyspark's daemon, which ends with stdin."""
    thread = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()"
    done = _run(thread, PYTHON_UNIX_DOMAIN_ENABLED="false")
    assert len(done.stdout) == 4, done.stderr  # a port, and nothing of ours


def test_what_is_not_installed_is_left_to_the_task() -> None:
    """Without the extra of loads the daemon serves all the same."""
    missing = "sys.modules['pyarrow'] = None"
    done = _run(missing)
    assert "calque.loader.run.engines.spark" not in done.stdout
    assert "calque.operator.services.fs.builder" in done.stdout, done.stderr


def test_another_python_has_its_own_daemon() -> None:
    """Where workers run another Python, which may have no calque, nothing is changed."""
    code = (
        "from calque.spark.session import PRELOADING, SparkOptions, _settings\n"
        "print(sorted(PRELOADING.keys() & _settings(SparkOptions()).keys()))\n"
        "print(sorted(PRELOADING.keys() & _settings(SparkOptions('spark://far:7077')).keys()))\n"
    )
    other = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=os.environ | {"PYSPARK_PYTHON": "/usr/bin/other"},
        timeout=60,
    )
    assert other.stdout == "[]\n[]\n", other.stderr
