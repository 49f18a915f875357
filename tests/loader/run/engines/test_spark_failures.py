"""What a user reads when Spark itself fails: errors of ours that say what happened."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from calque.errors import Unavailable
from calque.loader.model.plan import Transformation
from calque.loader.run.engines.spark import SparkEngine
from tests.loader.run.conftest import World

PRELUDE = """
import os, pathlib, signal, subprocess, sys
from calque.errors import CalqueError
from calque.loader.run.engines.spark import SparkEngine
from calque.loader.model.plan import Transformation
from calque.spark import session as sessions
from calque.spark.session import SparkOptions, session
from tests.loader.run.conftest import World

world = World(pathlib.Path(sys.argv[1]))
file = world.put("1.csv", b"1,x\\n")
select = Transformation(("`$1`", "`$2`"), ("a", "b"))

def told(work):
    try:
        work()
        print("nothing was raised", flush=True)
    except CalqueError as error:
        print(type(error).__name__, error.message.partition(chr(10))[0], sep=": ", flush=True)

def both(engine):
    told(lambda: list(engine.run(world.plan([file]))))
    told(lambda: list(engine.run(world.plan([file], transformation=select))))
"""


def run(folder: Path, script: str, **environment: str) -> list[str]:
    """What a script in a process of its own prints, line by line."""
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(script), str(folder)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()


def test_a_session_that_ended(tmp_path: Path) -> None:
    """A stopped session, and one whose JVM was killed, are named; so is a master that is none."""
    found = run(
        tmp_path,
        """
        spark = session(options=SparkOptions(master="local[1]"))
        spark.stop()
        both(SparkEngine(spark))
        spark = session(options=SparkOptions(master="local[1]"))
        pid = spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid()
        os.kill(pid, signal.SIGKILL)
        both(SparkEngine(spark))
        os._exit(0)
        """,
    )
    assert [line.partition(":")[0] for line in found] == ["Unavailable"] * 4
    assert all("session that was given is stopped" in line for line in found[:2])
    assert all("JVM does not answer" in line for line in found[2:])


def test_a_master_that_is_none(tmp_path: Path) -> None:
    """A wrong master is a wrong setting."""
    (found,) = run(
        tmp_path,
        """
        told(lambda: session(options=SparkOptions(master="nonsense")))
        """,
    )
    assert found.startswith(("ConfigInvalid: ", "Unavailable: "))
    assert "pyspark" not in found


def test_executors_without_calque(tmp_path: Path) -> None:
    """A Python on the workers that has no calque is named as the cause, with or without SELECT."""
    bare = Path(sys.base_prefix) / "bin" / "python3"
    if not bare.exists() or _has_calque(bare):
        pytest.skip("there is no Python without calque here")
    found = run(
        tmp_path,
        """
        both(SparkEngine(session(options=SparkOptions(master="local[1]"))))
        """,
        PYSPARK_PYTHON=str(bare),
        PYSPARK_DRIVER_PYTHON=sys.executable,
    )
    assert all(line.startswith("ConfigInvalid: the Python of the Spark exec") for line in found)


def _has_calque(python: Path) -> bool:
    found = subprocess.run([python, "-c", "import calque"], capture_output=True, cwd="/")
    return found.returncode == 0


def test_a_worker_that_is_killed(world: World, spark: Any) -> None:
    """A worker that dies in every attempt is told as such."""
    theirs = spark.newSession()
    theirs.udf.register("die", lambda text: os._exit(9), "string")
    file = world.put("1.csv", b"1,x\n")
    plan = world.plan([file], transformation=Transformation(("`$1`", "die(`$2`)"), ("a", "b")))
    with pytest.raises(Unavailable, match="worker process of Spark was killed"):
        list(SparkEngine(theirs).run(plan))


def test_in_our_words_alone(tmp_path: Path) -> None:
    """A SELECT that cannot be read, or fails on a row, shows no log and no trace of Spark."""
    found = run(
        tmp_path,
        """
        os.dup2(1, 2)
        engine = SparkEngine(session(options=SparkOptions(master="local[1]")))
        for wrong in ("`$9`", "1 / (CAST(`$1` AS INT) - 1)"):
            select = Transformation((wrong,), ("a",))
            told(lambda: list(engine.run(world.plan([file], transformation=select))))
        """,
    )
    assert [line.partition(": ")[0] for line in found] == ["StatementInvalid", "FileRefused"]
