"""The ledger's share of a load: comparing a huge stage, big commits, recovery.

python -m bench.load_ledger      a million staged files, and ten million
python -m bench.load_ledger 0.1  a tenth of that
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.table import Row, asked_scale, show

MILLION = 1_000_000


def main() -> None:
    """Print the table."""
    show("Loads: ledger and commits", run(asked_scale()))


def run(scale: float) -> list[Row]:
    """Every measurement, each in a process of its own so that memory is its own."""
    count = max(1000, int(scale * MILLION))
    with tempfile.TemporaryDirectory() as folder:
        rows = _compare(Path(folder), count)
        rows += _list_local(Path(folder), max(1000, count // 10))
        rows += [_commit(Path(folder), kind) for kind in ("delta", "iceberg")]
        rows.append(_recover(Path(folder)))
    return rows


def _child(step: str, *arguments: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "bench._load_ledger_steps", step, *arguments],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _compare(folder: Path, count: int) -> list[Row]:
    """Against all records in memory; then ten times as many, against ten times the time."""
    few, many = _compared(folder, count), _compared(folder, 10 * count)
    naive = _child("naive", str(folder / f"{count}.db"), str(count))
    (folder / f"{10 * count}.db").unlink()
    told = f"records in a dict, with the listing {naive['seconds']:.1f} s"
    tenfold = f"ten times {_after(few):.1f} s"
    return [
        _time(count, few, told, naive["seconds"] / few["seconds"], 10),
        _memory(count, few, f"records in a dict {naive['megabytes']:.0f} MB", naive, 300),
        _time(10 * count, many, tenfold, 10 * _after(few) / _after(many), 90),
        _memory(10 * count, many, f"{few['megabytes']:.0f} MB at {count:,}", few, 500),
    ]


def _list_local(folder: Path, count: int) -> list[Row]:
    """CPU alone: a tenth of the files will do, because the time is that of each."""
    taken = _child("list", str(folder / "stage"), str(count))
    each = {name: taken[name] / count * 1e6 for name in ("bare", "listing", "compared")}
    bare = f"scandir and stat {each['bare']:.1f} µs"
    return [
        Row(
            f"list a local stage of {count:,} files, CPU of each",
            f"{each['listing']:.1f} µs",
            bare,
            each["bare"] / each["listing"],
            "≥ 0.7",
            each["bare"] / each["listing"] >= 0.7,
        ),
        Row(
            f"list and compare a local stage of {count:,} files, nothing new, CPU of each",
            f"{each['compared']:.1f} µs, {taken['megabytes']:.0f} MB",
            bare,
            each["bare"] / each["compared"],
            "for information",
            True,
        ),
    ]


def _compared(folder: Path, count: int) -> dict[str, float]:
    ledger = str(folder / f"{count}.db")
    _child("fill", ledger, str(count))
    return _child("compare", ledger, str(count))


def _after(taken: dict[str, float]) -> float:
    """Seconds beyond those of the listing."""
    return taken["seconds"] - taken["listing"]


def _time(count: int, taken: dict[str, float], peer: str, ratio: float, limit: int) -> Row:
    return Row(
        f"compare {count:,} staged files after listing, nothing new, no JVM",
        f"{_after(taken):.1f} s; {taken['cpu']:.1f} s of CPU with the listing",
        peer,
        ratio,
        f"≤ {limit} s",
        _after(taken) <= limit,
    )


def _memory(
    count: int, taken: dict[str, float], peer: str, other: dict[str, float], limit: int
) -> Row:
    return Row(
        f"memory at {count:,} files",
        f"{taken['megabytes']:.0f} MB",
        peer,
        other["megabytes"] / taken["megabytes"],
        f"< {limit} MB",
        taken["megabytes"] < limit,
    )


def _commit(folder: Path, kind: str) -> Row:
    found = _child("commit", str(folder / f"lake-{kind}"), kind, "10000")
    wanted = 1 if kind == "delta" else 3
    return Row(
        f"commit 10,000 data files, {kind}",
        f"{found['seconds']:.2f} s",
        f"the same again, already encoded {found['library']:.2f} s",
        found["library"] / found["seconds"],
        f"≤ {wanted} s",
        found["seconds"] <= wanted,
    )


def _recover(folder: Path) -> Row:
    found = _child("recover", str(folder / "recover"))
    return Row(
        "recover a dead load of 1,000 files",
        f"{found['seconds']:.2f} s",
        f"one empty commit {found['library']:.2f} s",
        found["library"] / found["seconds"],
        "≤ 2 s",
        found["seconds"] <= 2,
    )


if __name__ == "__main__":
    main()
