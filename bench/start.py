"""What it costs to start: CPU of small commands beside a bare Python."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.table import Row, show

ROUNDS = 5
BARE = ("-c", "pass")
WANTED = {"--help": 0.12, "cp a b": 0.2, "cp --help": 0.2, "load --help": 0.2, "store --help": 0.2,
          "load stage --into ./table": 0.5}  # fmt: skip
"""Seconds of CPU at most; the last one finds nothing to do, because a load before it did it."""


def least_cpu(arguments: Sequence[str], folder: Path) -> float:
    """The least CPU, of user and system, that a Python with these arguments took."""
    return min(_cpu(arguments, folder) for _ in range(ROUNDS))


def _cpu(arguments: Sequence[str], folder: Path) -> float:
    before = os.times()
    subprocess.run([sys.executable, *arguments], cwd=folder, check=True, capture_output=True)
    after = os.times()
    return sum(after[2:4]) - sum(before[2:4])  # of children that have ended


def main() -> None:
    """Measure each command and the bare Python."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        (folder / "a").write_text("data")
        (folder / "stage").mkdir()
        (folder / "stage" / "a.csv").write_text("id\n1\n")
        first = ["-m", "calque.cli", "load", "stage", "--into", "./table", "--spark", "local"]
        subprocess.run([sys.executable, *first], cwd=folder, check=True, capture_output=True)
        bare = least_cpu(BARE, folder)
        for command, most in WANTED.items():
            taken = least_cpu(("-m", "calque.cli", *command.split()), folder)
            rows.append(
                Row(
                    f"CPU of `calque {command}`",
                    f"{taken:.2f} s",
                    f"python -c pass {bare:.2f} s",
                    taken / max(bare, 0.01),
                    f"at most {most} s",
                    taken <= most,
                )
            )
    show("Start", rows)


if __name__ == "__main__":
    main()
