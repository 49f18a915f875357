"""The Spark session: started only when asked, quiet, and gone with its process."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil

START = """
from calque.spark.session import session, SparkOptions
spark = session(options=SparkOptions(master="local[1]"))
print(spark.sparkContext.parallelize([1, 2, 3], 1).map(lambda x: x + 1).sum(), flush=True)
"""


def python(code: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    env = {k: v for k, v in os.environ.items() if k not in {"JAVA_HOME", "SPARK_HOME"}}
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=env | environment,
        timeout=120,
    )


def test_a_session_runs_without_java_and_says_nothing() -> None:
    """No JAVA_HOME, an empty PATH for java: rows come back, and no log line is printed."""
    done = python(START, PATH="/nonexistent")
    assert done.stdout == "9\n"
    assert done.stderr == ""


def test_a_given_session_is_used_and_an_active_one_found() -> None:
    """Never a second session beside the caller's."""
    done = python(
        "from calque.spark.session import session\n"
        "first = session()\n"
        "print(session(first) is first, session().sparkContext is first.sparkContext)\n"
    )
    assert done.stdout == "True True\n", done.stderr


def test_the_jvm_dies_with_a_killed_process() -> None:
    """SIGKILL leaves no JVM behind."""
    code = START + "import time; time.sleep(120)"
    victim = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert victim.stdout is not None
    assert victim.stdout.readline() == "9\n"
    jvms = [p for p in psutil.Process(victim.pid).children(recursive=True) if p.name() == "java"]
    assert jvms
    victim.send_signal(signal.SIGKILL)
    victim.wait()
    victim.stdout.close()
    _, alive = psutil.wait_procs(jvms, timeout=30)
    assert not alive


def test_the_jvm_ends_with_its_process() -> None:
    """A process that ends in order leaves no JVM, though it does not wait for it."""
    code = START + "print(__import__('psutil').Process().children()[0].pid)"
    done = python(code)
    pid = int(done.stdout.split()[1])
    jvms = [psutil.Process(pid)] if psutil.pid_exists(pid) else []
    _, alive = psutil.wait_procs(jvms, timeout=30)
    assert not alive


def test_importing_calque_starts_nothing_and_stays_light() -> None:
    """No JVM, no pyspark, no SDK on import: `calque --version` answers at once."""
    done = python(
        "import sys, calque, calque.cli.main\n"
        "heavy = {'pyspark', 'boto3', 'botocore', 'pyarrow', 'google.cloud', 'azure', 'grpc'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    assert done.stdout == "[]\n", done.stderr


def test_a_damaged_class_cache_is_ignored_quietly(tmp_path: Path) -> None:
    """A cache that the JVM cannot use costs speed, never a message or a failure."""
    spoil = (
        "from calque.spark import class_cache, gateway\n"
        "from calque.spark.java import find_jvm\n"
        "jvm = find_jvm(); path = class_cache.cache_path(jvm, gateway.java_command(jvm))\n"
        "path.parent.mkdir(parents=True); path.write_bytes(b'not a cache' * 999)\n"
        "assert not class_cache.is_accepted(path, gateway.java_command(jvm))\n"
    )
    done = python(spoil + START, XDG_CACHE_HOME=str(tmp_path))
    assert done.stdout == "9\n", done.stderr
    assert done.stderr == ""


def test_a_cache_of_another_installation_stays(tmp_path: Path) -> None:
    """Making a class cache replaces this environment's older ones and nobody else's."""
    code = (
        "from calque.spark import class_cache, gateway\n"
        "from calque.spark.java import find_jvm\n"
        "jvm = find_jvm(); path = class_cache.cache_path(jvm, gateway.java_command(jvm))\n"
        "path.parent.mkdir(parents=True); path.touch()\n"
        "older = class_cache.cache_path(jvm, ['of an older Spark']); older.touch()\n"
        "import sys; sys.prefix = '/another'\n"
        "other = class_cache.cache_path(jvm, ['of another']); other.touch()\n"
        "sys.prefix = sys.exec_prefix\n"
        "class_cache.remove_others(path)\n"
        "print(path.exists(), older.exists(), other.exists())\n"
    )
    done = python(code, XDG_CACHE_HOME=str(tmp_path))
    assert done.stdout == "True False True\n", done.stderr


def test_tasks_need_no_sql_session() -> None:
    """A load of rows starts no SQL session; one that is asked for later shares its context."""
    done = python(
        "from calque.spark.session import SparkOptions, context, session\n"
        "tasks = context(options=SparkOptions(master='local[1]'))\n"
        "print(tasks.parallelize([1, 2], 1).map(lambda x: x + 1).sum())\n"
        "from pyspark.sql import SparkSession\n"
        "print(SparkSession._instantiatedSession)\n"
        "print(session().sparkContext is tasks, session().range(3).count())\n"
    )
    assert done.stdout == "5\nNone\nTrue 3\n", done.stderr


def test_workers_have_pyspark_compiled() -> None:
    """Python workers import the installed pyspark, not the zip of sources that Spark carries."""
    done = python(
        "from calque.spark.session import SparkOptions, context\n"
        "where = lambda _: __import__('pyspark').__file__\n"
        "tasks = context(options=SparkOptions(master='local[1]'))\n"
        "print(tasks.parallelize([1], 1).map(where).first() == where(0))\n"
    )
    assert done.stdout == "True\n", done.stderr


def test_a_dead_jvm_is_started_again() -> None:
    """A process that lives on after its JVM was killed gets another when it asks for Spark.

    The server of sums, which was reading from it, shows no traceback.
    """
    script = """
import os, signal, time
from calque.spark.session import context, session

first = context()
assert first.parallelize([1, 2]).sum() == 3
os.kill(first._jvm.java.lang.ProcessHandle.current().pid(), signal.SIGKILL)
again = context()
assert again is not first
print(again.parallelize([1, 2]).sum(), session().sql("SELECT 4 AS x").first()["x"])
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300
    )
    assert done.stdout.split() == ["3", "4"], done.stderr
    assert "Exception occurred during processing" not in done.stderr
