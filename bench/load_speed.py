"""Loads against plain Spark, pyarrow alone, DuckDB and dlt: same data, one run.

``python -m bench.load_speed 0.1`` takes a tenth: 200 MB of CSV in 20 files. Peers that are not
installed are passed over; ``BENCH_PEERS`` names a Python that has duckdb and dlt. The ways take
turns, and the median of three rounds counts (``BENCH_ROUNDS``).
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench import _load_data as load_data
from bench.table import Row, asked_scale, show

FILES = 200
JSON_FILES = 60
TIMEOUT = 1800
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))


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
    wanted = {"spark": 5.0, "limit": 0.85, "duckdb": 1.0, "dlt": 1.0}
    with _stage(base, "csv") as stage:
        load_data.make_csv(stage, files)
        size = _size(stage)
        taken = _take_turns(("calque", *wanted, "calque-local"), stage, "csv")
    rows = _rows(f"CSV to Delta, {files} files", size, taken, wanted)
    rows += _cost_of_errors(base, "csv", files, taken)
    ours, here = taken.get("calque"), taken.get("calque-local")
    if ours is not None:
        rows.append(memory_row("peak memory, JVM included", ours.peak))
    if here is not None and ours is not None:
        spark = f"Spark {_rate(size, ours)}"
        ratio = ours.seconds / here.seconds
        name = "the local engine, no JVM"
        rows.append(Row(name, _rate(size, here), spark, ratio, "for information", True))
    return rows


def memory_row(what: str, peak: int) -> Row:
    """The most memory that a load may hold."""
    held = peak / (1 << 30)
    return Row(what, f"{held:.2f} GB", "limit 1.5 GB", held / 1.5, "at most 1", held <= 1.5)


def _json(base: Path, files: int) -> list[Row]:
    wanted = {"spark": 4.0, "limit": 1.0, "duckdb": 0.0}
    with _stage(base, "json") as stage:
        load_data.make_json(stage, files)
        taken = _take_turns(("calque", *wanted), stage, "json")
        rows = _rows("NDJSON to Delta", _size(stage), taken, wanted)
    return rows + _cost_of_errors(base, "json", files, taken)


def _cost_of_errors(base: Path, kind: str, files: int, clean: dict[str, Taken]) -> list[Row]:
    make = load_data.make_csv if kind == "csv" else load_data.make_json
    with _stage(base, kind) as stage:
        make(stage, files, bad=0.01)
        taken = _take_turns(("calque",), stage, kind)
    if not (taken and "calque" in clean):
        return []
    bad, sound = taken["calque"].seconds, clean["calque"].seconds
    name = f"{'CSV' if kind == 'csv' else 'NDJSON'}, 1 % bad rows under CONTINUE"
    cost = bad / sound
    return [Row(name, f"{bad:.1f} s", f"clean {sound:.1f} s", cost, "at most 1.5", cost <= 1.5)]


def _parquet(base: Path, files: int) -> list[Row]:
    wanted = {"spark": 10.0, "limit": 1.0, "duckdb": 0.0}
    with _stage(base, "parquet") as stage:
        load_data.make_parquet(stage, files)
        taken = _take_turns(("calque", *wanted), stage, "parquet")
        return _rows("Parquet that fits", _size(stage), taken, wanted)


def _rows(what: str, size: int, taken: dict[str, Taken], wanted: dict[str, float]) -> list[Row]:
    """Ours against each peer that ran."""
    ours = taken.get("calque")
    rows = []
    for way, least in wanted.items():
        peer = taken.get(way)
        if ours is None or peer is None:
            continue
        assert ours.rows == peer.rows, f"{way} has {peer.rows} rows, calque {ours.rows}"
        ratio = peer.seconds / ours.seconds
        told = f"at least {least:g}" if least else "for information"
        name = "pyarrow, two processes" if way == "limit" else way
        against = f"{name} {_rate(size, peer)}"
        rows.append(Row(what, _rate(size, ours), against, ratio, told, ratio >= least))
    return rows


def _take_turns(ways: Sequence[str], stage: Path, kind: str) -> dict[str, Taken]:
    """Each way's median; a busy moment, and the write-back of the data, hit all alike."""
    os.sync()
    runs: dict[str, list[Taken]] = {way: [] for way in ways}
    for _ in range(ROUNDS):
        for way in list(runs):
            taken = measure(way, stage, kind)
            if taken is None:
                del runs[way]
            else:
                runs[way].append(taken)
    return {way: _median(taken) for way, taken in runs.items()}


def _median(runs: Sequence[Taken]) -> Taken:
    seconds = statistics.median(run.seconds for run in runs)
    wall = statistics.median(run.wall for run in runs)
    return Taken(seconds, wall, runs[0].rows, max(run.peak for run in runs))


def measure(way: str, stage: Path, kind: str) -> Taken | None:
    """Run a way in its own process; None where its tool is not installed."""
    python = os.environ.get("BENCH_PEERS", sys.executable) if way in ("duckdb", "dlt") else ""
    out = stage.parent / f"out-{way}"
    command = [python or sys.executable, "-m", "bench._load_ways", way, str(stage), str(out), kind]
    # Bytecode is kept, as it is for users: else every process would compile what it imports.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    began = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    )
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
