"""Loads where pyspark is not installed: what needs it says so, and nothing else needs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from calque.loader.run.engines.choose import SPARK_FROM

WITHOUT = """
import sys

sys.modules["pyspark"] = None
import calque
from calque.errors import MissingExtra
from calque.loader.run.engines import choose_engine

assert choose_engine(bytes={much}).name == "local"
try:
    calque.sql("COPY INTO './t' FROM (SELECT $1 AS a FROM 'in/a.csv') FILE_FORMAT = (TYPE = CSV)")
except MissingExtra as error:
    print(error.hint)
"""


def test_without_pyspark(tmp_path: Path) -> None:
    """A SELECT names the extra; a load of many bytes runs in plain processes."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("1,a\n")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT.format(much=SPARK_FROM * 4)],
        cwd=tmp_path,
        env={"XDG_STATE_HOME": str(tmp_path / "state"), "PATH": ""},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "calque[spark]" in done.stdout
