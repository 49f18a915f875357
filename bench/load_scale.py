"""Loads at both ends of the scale: one small file from a cold start, and very many small files.

``python -m bench.load_scale 0.1`` takes a tenth of the files: 10,000 instead of 100,000.

Everything runs on Spark, as the command does it, from the start of the process; the first row is
loaded when the table's commit is written. CPU seconds are those of the whole tree of processes,
for machines that do other work meanwhile.
"""

from __future__ import annotations

import ctypes
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as arrow_csv
import pyarrow.parquet as pq
from deltalake import DeltaTable

from bench.table import Row, asked_scale, show

FILES = 100_000
ROUNDS = 3
MIB = 1 << 20
ADOPT_ORPHANS = 36
"""PR_SET_CHILD_SUBREAPER: so that the CPU time of orphans counts."""
TIMEOUT = 1800


@dataclass(frozen=True, slots=True)
class Taken:
    """Seconds from the start of a process to a file it wrote and to its end, and CPU seconds."""

    first: float
    whole: float
    cpu: float


def run(scale: float) -> list[Row]:
    """Every measurement; ``scale`` 1 is a hundred thousand files."""
    ctypes.CDLL(None).prctl(ADOPT_ORPHANS, 1)
    subprocess.run([sys.executable, "-m", "calque.cli", "doctor", "--prepare"], capture_output=True)
    with tempfile.TemporaryDirectory(prefix="calque-bench-") as folder:
        base = Path(folder)
        return [_first_row(base), *_small_files(base, max(10, round(FILES * scale)))]


def _first_row(base: Path) -> Row:
    stage = base / "first"
    make_files(stage, 1)
    _load(stage, base / "warm")
    ours, peer = [], []
    for number in range(ROUNDS):
        ours.append(_load(stage, base / f"first-{number}"))
        peer.append(_plain_spark(stage, base / f"plain-{number}"))
    mine, theirs = min(ours, key=_first), min(peer, key=_first)
    return Row(
        "from the command to the first row loaded, JVM started",
        f"{mine.first:.1f} s, {mine.cpu:.1f} s of CPU to the end",
        f"read.csv and write.parquet, started as quickly {theirs.first:.1f} s, {theirs.cpu:.1f} s",
        mine.first / theirs.first,
        "within 6 s",
        mine.first <= 6,
    )


def _small_files(base: Path, count: int) -> list[Row]:
    stage, out = base / "small", base / "small-table-0"
    rows = make_files(stage, count)
    os.sync()
    loads, bares = [], []
    for number in range(ROUNDS):
        loads.append(_load(stage, base / f"small-table-{number}"))
        bares.append(_bare(stage, base / "bare.parquet"))
    taken = sorted(loads, key=lambda one: one.whole)[len(loads) // 2]
    bare = statistics.median(bares)
    actions = pa.table(DeltaTable(out).get_add_actions())
    found = sum(actions["num_records"].to_pylist())
    assert found == rows, f"{found} rows in the table, {rows} in the files"
    sizes = actions["size_bytes"].to_pylist()
    again = _load(stage, out, commit=None)
    allowed = 360 * count / FILES
    return [
        Row(
            f"{count:,} files of 1 KB",
            f"{taken.whole:.0f} s, {taken.cpu:.0f} s of CPU",
            f"pyarrow alone, one process {bare:.0f} s",
            bare / taken.whole,
            f"at least 0.8, within {allowed:.0f} s",
            taken.whole <= min(allowed, bare / 0.8),
        ),
        Row(
            f"data files of {count:,} files of 1 KB",
            f"{len(sizes)}, the least {min(sizes) / MIB:.1f} MiB",
            "one",
            len(sizes),
            "one, or of at least 64 MiB",
            len(sizes) == 1 or min(sizes) >= 64 * MIB,
        ),
        Row(
            f"{count:,} files of 1 KB again, nothing new, no JVM",
            f"{again.whole:.1f} s, {again.cpu:.1f} s of CPU",
            f"the load {taken.whole:.0f} s",
            again.whole / taken.whole,
            "for information",
            True,
        ),
    ]


def make_files(folder: Path, count: int) -> int:
    """CSV files of 1 KB with a header; the number of rows in all."""
    folder.mkdir()
    chosen = random.Random(3)
    rows = [
        f"{chosen.randrange(10**9)},{chosen.random():.6f},name-{chosen.randrange(10**6)},"
        f"2024-01-{chosen.randint(1, 28):02d}\n"
        for _ in range(22)
    ]
    for number in range(count):
        lines = "".join(f"{number * 22 + at},{row}" for at, row in enumerate(rows))
        (folder / f"part-{number:06d}.csv").write_text(f"id,customer,amount,name,day\n{lines}")
    return count * len(rows)


def _load(stage: Path, out: Path, commit: str | None = f"_delta_log/{1:020}.json") -> Taken:
    """``calque load`` as a process; the table is made by its first commit, filled by the next."""
    command = [
        *(sys.executable, "-m", "calque.cli", "load", str(stage), "--into", str(out)),
        *("--ledger", f"{out}-ledger.db", "--spark", "local[2]", "--quiet", "--json"),
    ]
    return _measured(command, None if commit is None else out / commit)


def _plain_spark(stage: Path, out: Path) -> Taken:
    code = (
        "import sys\n"
        "from calque.spark.session import SparkOptions, session\n"
        "spark = session(options=SparkOptions(master='local[2]'))\n"
        "spark.read.csv(sys.argv[1], header=True).write.parquet(sys.argv[2])\n"
    )
    return _measured([sys.executable, "-c", code, str(stage), str(out)], out / "_SUCCESS")


def _measured(command: Sequence[str], written: Path | None) -> Taken:
    # Bytecode is kept, as it is for users: workers start faster.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.time()
    done = subprocess.run(command, capture_output=True, env=environment, timeout=TIMEOUT)
    whole = time.time() - began
    if done.returncode:
        raise RuntimeError(done.stderr.decode(errors="replace")[-2000:])
    with suppress(ChildProcessError):
        while True:  # a JVM that its process did not wait for is ours now
            os.waitpid(-1, 0)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    first = written.stat().st_mtime - began if written is not None else whole
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Taken(first, whole, cpu)


def _bare(stage: Path, out: Path) -> float:
    """The limit of one process: parse every file, write one."""
    began = time.perf_counter()
    options = arrow_csv.ReadOptions(use_threads=False)
    tables = [arrow_csv.read_csv(file, read_options=options) for file in sorted(stage.iterdir())]
    pq.write_table(pa.concat_tables(tables), out, compression="zstd")
    return time.perf_counter() - began


def _first(taken: Taken) -> float:
    return taken.first


def main() -> None:
    """Print the table."""
    show("Loads: from a cold start, and of very many small files", run(asked_scale()))


if __name__ == "__main__":
    main()
