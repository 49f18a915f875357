"""That every benchmark runs, as small as it gets. How fast anything is no test says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BENCHMARKS = sorted(
    path.stem
    for path in (ROOT / "bench").glob("*.py")
    if not path.stem.startswith("_") and path.stem != "table"
)


@pytest.mark.soak
@pytest.mark.parametrize("name", BENCHMARKS)
def test_runs_at_its_smallest(name: str) -> None:
    """It ends well, and prints a table of rows each with a ratio and what was wanted."""
    done = subprocess.run(
        [sys.executable, "-m", "bench", "--scale", "0.001", name],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=1500,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line for line in done.stdout.splitlines() if line.endswith(("| yes |", "| **no** |"))]
    assert rows, done.stdout + done.stderr
    assert all(len(row.split(" | ")) == 6 for row in rows)
