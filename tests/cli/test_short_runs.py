"""Short runs beside busy processors, again and again: none may end as a crash."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROUNDS = int(os.environ.get("CALQUE_SHORT_RUNS", "1000"))
BUSY = int(os.environ.get("CALQUE_BUSY_LOOPS", "4"))


@pytest.fixture
def busy() -> Iterator[None]:
    """Loops that take the processor from whoever ends."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(BUSY)]
    yield
    for loop in loops:
        loop.kill()
        loop.wait()


@pytest.mark.soak
@pytest.mark.timeout(6 * 3600)
def test_every_run_ends_well(folder: Path, environment: dict[str, str], busy: None) -> None:
    """Exit code 0 and no word of a library, whichever thread of it outlived the work.

    Delta and Iceberg in turn; each load has one new file, so that it commits.
    """
    (folder / "in").mkdir()
    strange = []
    for number in range(ROUNDS):
        (folder / "in" / f"{number}.csv").write_text(f"id,name\n{number},x\n")
        table = "lake/t" if number % 2 else "iceberg:lake/u"
        only = ("--file", f"{number}.csv")
        for arguments in (
            ("load", "in/", "--into", table, "-q", *only),
            ("cp", f"in/{number}.csv", "copy.csv"),
        ):
            done = subprocess.run(
                [sys.executable, "-m", "calque.cli", *arguments],
                cwd=folder, env=environment, capture_output=True, text=True,
            )  # fmt: skip
            loud = arguments[0] == "load" and done.stderr
            if done.returncode != 0 or loud or "terminate" in done.stderr:
                strange.append((number, arguments, done.returncode, done.stderr[-500:]))
    assert strange == []
