"""One load of 20 GB on Spark: its memory, and whether its time grows with its size.

``python -m bench.load_large 0.1`` loads 2 GB of CSV in files of 10 MB, and before it a quarter of
that. The files are links to twenty of them: disk is needed for the table alone, about
a third of the size.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from bench import _load_data as load_data
from bench import load_speed
from bench.table import Row, asked_scale, show

GIGABYTES = 20
DISTINCT = 20
GIGABYTE = 10**9


def run(gigabytes: float) -> list[Row]:
    """Time and memory of the whole, beside a quarter of it."""
    with tempfile.TemporaryDirectory(prefix="calque-bench-") as folder:
        base = Path(folder)
        parts = base / "parts"
        parts.mkdir()
        load_data.make_csv(parts, DISTINCT)
        quarter, size_before = _measure(base / "quarter", parts, gigabytes / 4)
        whole, size = _measure(base / "whole", parts, gigabytes)
    ratio = (whole.seconds / size) / (quarter.seconds / size_before)
    return [
        Row(
            f"{size / GIGABYTE:.1f} GB of CSV in one load",
            f"{whole.seconds:.0f} s, {size / whole.seconds / 1e6:.0f} MB/s",
            f"a quarter of it {size_before / quarter.seconds / 1e6:.0f} MB/s",
            ratio,
            "at most 1.1",
            ratio <= 1.1,
        ),
        load_speed.memory_row(f"peak memory of {size / GIGABYTE:.1f} GB", whole.peak),
    ]


def _measure(base: Path, parts: Path, gigabytes: float) -> tuple[load_speed.Taken, int]:
    stage = base / "stage"
    stage.mkdir(parents=True)
    files = sorted(parts.iterdir())
    size = number = 0
    while size < gigabytes * GIGABYTE:
        part = files[number % len(files)]
        os.link(part, stage / f"part-{number:06d}.csv")
        size += part.stat().st_size
        number += 1
    os.sync()
    taken = load_speed.measure("calque", stage, "csv")
    assert taken is not None, "the load failed"
    assert taken.rows == number * load_data.ROWS
    return taken, size


def main() -> None:
    """Print the table."""
    show("load_large", run(asked_scale() * GIGABYTES))


if __name__ == "__main__":
    main()
