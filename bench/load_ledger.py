"""The ledger's share of a load: comparing a huge stage, big commits, recovery.

python -m bench.load_ledger              a million staged files
python -m bench.load_ledger --million 10 ten million
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.table import Row, show

MILLION = 1_000_000


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--million", type=float, default=1.0)
    asked = parser.parse_args()
    show("Loads: ledger and commits", run(asked.million))


def run(scale: float) -> list[Row]:
    """Every measurement, each in a process of its own so that memory is its own."""
    count = int(scale * MILLION)
    with tempfile.TemporaryDirectory() as folder:
        rows = _compare(Path(folder), count)
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
    ledger = str(folder / "ledger.db")
    _child("fill", ledger, str(count))
    ours = _child("compare", ledger, str(count))
    # All records in memory: beyond a million they would fill the machine.
    few = min(count, MILLION)
    if few < count:
        ledger = str(folder / "few.db")
        _child("fill", ledger, str(few))
    naive = _child("naive", ledger, str(few))
    seconds, memory = (10, 300) if count <= MILLION else (90, 500)
    after = ours["seconds"] - ours["listing"]
    return [
        Row(
            f"compare {count:,} staged files after listing, nothing new, no JVM",
            f"{after:.1f} s; with the listing {ours['cpu']:.1f} s of CPU",
            f"records of {few:,} in a dict, listing included {naive['seconds']:.1f} s",
            (naive["seconds"] / few) / (ours["seconds"] / count),
            f"≤ {seconds} s",
            after <= seconds,
        ),
        Row(
            f"memory at {count:,} files",
            f"{ours['megabytes']:.0f} MB",
            f"records of {few:,} in a dict {naive['megabytes']:.0f} MB",
            naive["megabytes"] / ours["megabytes"],
            f"< {memory} MB",
            ours["megabytes"] < memory,
        ),
    ]


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
