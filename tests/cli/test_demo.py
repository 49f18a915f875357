"""The tour behind ``make demo``."""

import subprocess
import sys
from pathlib import Path

TOUR = [sys.executable, "-m", "calque.cli", "demo", "--folder"]


def test_the_tour_runs_to_its_summary(tmp_path: Path) -> None:
    """Every chapter's claim is checked by the tour itself; it ends with what was seen."""
    done = subprocess.run(
        [*TOUR, "tour", "--no-keep"], cwd=tmp_path, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "still 60000 rows" in done.stdout
    assert "the original deleted, the copy read back\tthe same bytes" in done.stdout
    assert "two of eight nodes deleted, then repaired\tthe same bytes" in done.stdout
    assert "garbage collected\t" in done.stdout
    assert "resumed\t1.0 GiB, the same bytes" in done.stdout
    assert not (tmp_path / "tour").exists()


def test_a_folder_that_is_not_the_demo_s_is_left_alone(tmp_path: Path) -> None:
    """The tour makes its folder anew, so it refuses one that holds somebody's files."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    done = subprocess.run([*TOUR, "mine"], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "--folder" in done.stderr
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "years of work"
