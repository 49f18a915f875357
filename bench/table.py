"""Measurements as ratios of one run: what was measured, ours, the peer's, what we want."""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Row:
    """One comparison. ``ratio`` is what counts; ``wanted`` says in words what it should be."""

    what: str
    ours: str
    peer: str
    """The peer or the limit, with its figure: ``rclone 412/s``."""
    ratio: float
    wanted: str
    met: bool


def show(title: str, rows: Iterable[Row]) -> None:
    """Print the rows as a Markdown table; with BENCH_OUT set, keep them there as JSON too."""
    rows = list(rows)
    print(f"\n### {title}\n")
    print("| measured | ours | against | ratio | wanted | |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        mark = "yes" if row.met else "**no**"
        print(f"| {row.what} | {row.ours} | {row.peer} | {row.ratio:.2f} | {row.wanted} | {mark} |")
    if folder := os.environ.get("BENCH_OUT"):
        text = json.dumps([asdict(row) for row in rows], indent=2, ensure_ascii=False)
        (Path(folder) / f"{title}.json").write_text(text, encoding="utf-8")


def seconds(work: Callable[[], object]) -> float:
    """How long one call takes by the wall clock."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def alternate(rounds: int, *works: Callable[[], object]) -> list[float]:
    """The median time of each work, run in turn so that a busy moment hits all alike."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(rounds):
        for taken, work in zip(times, works, strict=True):
            taken.append(seconds(work))
    return [statistics.median(taken) for taken in times]


def asked_scale() -> float:
    """How large a run is wanted: the first argument, else BENCH_SCALE, else 1."""
    return float(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("BENCH_SCALE", "1"))
