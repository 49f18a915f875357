"""Loads against plain Spark, pyarrow alone, DuckDB and dlt: same data, one run.

``python -m bench.load_speed 0.1`` takes a tenth: 200 MB of CSV in 20 files. Peers that are not
installed are passed over; ``BENCH_PEERS`` names a Python that has duckdb and dlt.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench import _load_data as load_data
from bench.table import Row, asked_scale, show

FILES = 200
JSON_FILES = 60
TIMEOUT = 1800


@dataclass(frozen=True, slots=True)
class Taken:
    """Seconds by its own clock, wall time with the start, peak memory of its tree."""

    seconds: float
    wall: float
    rows: int
    peak: int


def run(scale: float) -> list[Row]:
    """Every comparison at a scale of 1 (2 GB of CSV) or less."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="calque-bench-") as folder:
        base = Path(folder)
        rows += _csv(base, max(2, round(FILES * scale)))
        rows += _json(base, max(2, round(JSON_FILES * scale)))
        rows += _parquet(base, max(2, round(FILES * scale)))
    return rows


def _csv(base: Path, files: int) -> list[Row]:
    with _stage(base, "csv") as stage:
        load_data.make_csv(stage, files)
        size = _size(stage)
        ours = _measure("calque", stage, "csv")
        rows = [
            _against(f"CSV to Delta, {files} files", size, ours, stage, "csv", way, least)
            for way, least in (("spark", 5.0), ("limit", 0.85), ("duckdb", 1.0), ("dlt", 1.0))
        ]
        here = _measure("calque-local", stage, "csv")
    with _stage(base, "csv") as stage:
        load_data.make_csv(stage, files, bad=0.01)
        bad = _measure("calque", stage, "csv")
    rows.append(_cost_of_errors("CSV", bad, ours))
    found = [row for row in rows if row is not None]
    if ours is not None:
        peak = ours.peak / (1 << 30)
        found.append(
            Row(
                "peak memory, JVM included",
                f"{peak:.2f} GB",
                "limit 1.5 GB",
                peak / 1.5,
                "at most 1",
                peak <= 1.5,
            )
        )
    if here is not None and ours is not None:
        ratio = ours.seconds / here.seconds
        found.append(
            Row(
                "the local engine, no JVM",
                _rate(size, here),
                f"Spark {_rate(size, ours)}",
                ratio,
                "for information",
                True,
            )
        )
    return found


def _json(base: Path, files: int) -> list[Row]:
    with _stage(base, "json") as stage:
        load_data.make_json(stage, files)
        ours = _measure("calque", stage, "json")
        rows = [
            _against("NDJSON to Delta", _size(stage), ours, stage, "json", way, least)
            for way, least in (("spark", 4.0), ("limit", 0.0), ("duckdb", 0.0))
        ]
    with _stage(base, "json") as stage:
        load_data.make_json(stage, files, bad=0.01)
        rows.append(_cost_of_errors("NDJSON", _measure("calque", stage, "json"), ours))
    return [row for row in rows if row is not None]


def _cost_of_errors(what: str, bad: Taken | None, clean: Taken | None) -> Row | None:
    if bad is None or clean is None:
        return None
    cost = bad.seconds / clean.seconds
    return Row(
        f"{what}, 1 % bad rows under CONTINUE",
        f"{bad.seconds:.1f} s",
        f"clean {clean.seconds:.1f} s",
        cost,
        "at most 1.5",
        cost <= 1.5,
    )


def _parquet(base: Path, files: int) -> list[Row]:
    with _stage(base, "parquet") as stage:
        load_data.make_parquet(stage, files)
        ours = _measure("calque", stage, "parquet")
        rows = [
            _against("Parquet that fits", _size(stage), ours, stage, "parquet", way, least)
            for way, least in (("spark", 10.0), ("limit", 1.0), ("duckdb", 0.0))
        ]
    return [row for row in rows if row is not None]


def _against(
    what: str, size: int, ours: Taken | None, stage: Path, kind: str, way: str, least: float
) -> Row | None:
    peer = _measure(way, stage, kind)
    if ours is None or peer is None:
        return None
    assert ours.rows == peer.rows, f"{way} has {peer.rows} rows, calque {ours.rows}"
    ratio = peer.seconds / ours.seconds
    wanted = f"at least {least:g}" if least else "for information"
    name = "pyarrow, two processes" if way == "limit" else way
    return Row(
        what, _rate(size, ours), f"{name} {_rate(size, peer)}", ratio, wanted, ratio >= least
    )


def _measure(way: str, stage: Path, kind: str) -> Taken | None:
    """Run a way in its own process; None where its tool is not installed."""
    python = os.environ.get("BENCH_PEERS", sys.executable) if way in ("duckdb", "dlt") else ""
    out = stage.parent / f"out-{way}"
    command = [python or sys.executable, "-m", "bench._load_ways", way, str(stage), str(out), kind]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    watch = _Watch(process.pid)
    answer, complaint = process.communicate(timeout=TIMEOUT)
    wall, peak = time.perf_counter() - began, watch.stop()
    subprocess.run(["rm", "-rf", str(out), f"{out}-ledger.db", f"{out}-state"], check=False)
    if process.returncode:
        reason = complaint.decode(errors="replace").strip().splitlines()[-1:]
        print(f"{way} is passed over: {' '.join(reason)}", file=sys.stderr)
        return None
    told = json.loads(answer.decode().strip().splitlines()[-1])
    return Taken(told["seconds"], wall, told["rows"], peak)


class _Watch:
    """The most memory that a process and its children held together."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._peak = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def stop(self) -> int:
        self._ended.set()
        self._thread.join()
        return self._peak

    def _look(self) -> None:
        while not self._ended.wait(0.2):
            try:
                top = psutil.Process(self._pid)
                tree = [top, *top.children(recursive=True)]
            except psutil.Error:
                return
            self._peak = max(self._peak, sum(_held(process) for process in tree))


def _held(process: psutil.Process) -> int:
    """Memory of a process's own, as far as one cheap look tells.

    The exact figure (USS) costs the machine a tenth of its time while the clock runs; this one
    counts pages that forked workers still share once for each of them.
    """
    try:
        found = process.memory_info()
        return int(found.rss - found.shared)
    except psutil.Error:
        return 0


@contextmanager
def _stage(base: Path, kind: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=base, prefix=kind) as folder:
        stage = Path(folder) / "stage"
        stage.mkdir()
        yield stage


def _size(stage: Path) -> int:
    return sum(file.stat().st_size for file in stage.iterdir())


def _rate(size: int, taken: Taken) -> str:
    return f"{size / taken.seconds / 1e6:.0f} MB/s"


def main() -> None:
    show("load_speed", run(asked_scale()))


if __name__ == "__main__":
    main()
