"""Local files: one large copy against ``cp``, and a listing against the bare system calls.

The copy shows progress and is durable when it returns; ``cp --reflink=auto`` is followed by an
fsync of its target, so both sides promise the same.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.table import Row, asked_scale, seconds, show
from calque.operator import Operator
from calque.values import GIB, MIB

ROUNDS = 6


def run(scale: float) -> list[Row]:
    """``scale`` 1: a file of 1 GiB and a tree of 50,000 files."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as name:
        folder = Path(name)
        return [
            _large_copy(folder, max(1, int(1024 * scale)) * MIB),
            _listing(folder, max(10, int(50_000 * scale))),
        ]


def _large_copy(folder: Path, size: int) -> Row:
    source, ours, theirs = folder / "source", folder / "ours", folder / "theirs"
    with open(source, "wb") as file:
        for _ in range(size // MIB):
            file.write(os.urandom(MIB))
        os.fsync(file.fileno())
    op = Operator.from_uri(str(folder))
    shown: list[float | None] = []

    def copy() -> None:
        with op.copier("source", "ours") as copier:
            shown.extend(copier.progress.fraction for _ in copier)

    def cp() -> None:
        subprocess.run(["cp", "--reflink=auto", source, theirs], check=True)
        _sync(theirs)

    mine, peers = [], []
    for turn in range(ROUNDS):
        # neighbours in time are compared, and each goes first as often: a busy disk hits both
        for work, taken in ((copy, mine), (cp, peers))[:: 1 if turn % 2 else -1]:
            _fresh(ours, theirs)
            taken.append(seconds(work))
            if work is copy:
                assert ours.stat().st_size == size
                assert shown[-1] == 1.0
    ratio = statistics.median(peer / own for own, peer in zip(mine, peers, strict=True))
    return Row(
        what=f"local copy of {size / GIB:g} GiB, progress shown, durable",
        ours=f"{size / statistics.median(mine) / GIB:.2f} GiB/s",
        peer=f"cp --reflink=auto + fsync {size / statistics.median(peers) / GIB:.2f} GiB/s",
        ratio=ratio,
        wanted="at least 0.9",
        met=ratio >= 0.9,
    )


def _fresh(*targets: Path) -> None:
    """Nobody waits for what an earlier round left to write."""
    for target in targets:
        target.unlink(missing_ok=True)
    os.sync()


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _listing(folder: Path, count: int) -> Row:
    tree = folder / "tree"
    for number in range(count):
        if number % 1000 == 0:
            (tree / f"d{number:07}").mkdir(parents=True)
        (tree / f"d{number // 1000 * 1000:07}" / f"f{number:07}").touch()
    op = Operator.from_uri(str(tree))
    mine, bare = [], []
    for _ in range(ROUNDS):
        mine.append(_cpu(lambda: sum(1 for _ in op.list()), count))
        bare.append(_cpu(lambda: _bare(tree), count))
    shutil.rmtree(tree)
    ratio = statistics.median(peer / own for own, peer in zip(mine, bare, strict=True))
    return Row(
        what=f"listing {count} files in key order, with size, time and pin, a second of CPU",
        ours=f"{count / statistics.median(mine):,.0f}",
        peer=f"scandir and stat alone {count / statistics.median(bare):,.0f}",
        ratio=ratio,
        wanted="at least 0.7 of the bare calls",
        met=ratio >= 0.7,
    )


def _cpu(work: Callable[[], int], count: int) -> float:
    """The CPU time of a listing that must find ``count`` files."""
    begun = time.process_time()
    assert work() == count
    return time.process_time() - begun


def _bare(tree: Path) -> int:
    """The least that any listing with sizes must do."""
    count, waiting = 0, [str(tree)]
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir():
                    waiting.append(entry.path)
                else:
                    entry.stat(follow_symlinks=False)
                    count += 1
    return count


def main() -> None:
    show("Local files", run(asked_scale()))


if __name__ == "__main__":
    main()
