"""Trees of keys that are only listed: memory of comparing a million, and listings in parallel."""

from __future__ import annotations

import math
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from bench import _s3
from bench._commands import Taken, measure
from bench._listing_server import KINDS
from bench.table import Row
from calque.values import MIB

_PAGE = 1000
_DELAY = 0.2
_WORKERS = 8


def memory_of_a_million(scale: float) -> Row:
    """Two equal trees are compared; what we hold at most does not grow with them."""
    count = max(20_000, int(1_000_000 * scale))
    with _server(count, 0.0) as endpoint:
        taken = _compare(endpoint, "digits", _s3.CONCURRENT, memory=True)
    held = taken.peak / MIB
    what = f"compare {count:,} a side, peak memory"
    return Row(what, f"{held:.0f} MiB", "a bound of 100 MB", held / 100, "below 1", held < 100)


def parallel_listings(scale: float) -> list[Row]:
    """Eight workers on a slow server against one, and what they ask for besides the pages."""
    count = max(25_000, int(100_000 * scale))
    rows = []
    with _server(count, _DELAY) as endpoint:
        for kind in KINDS:
            alone = _compare(endpoint, kind, 1)
            _count(endpoint)
            together = _compare(endpoint, kind, _WORKERS)
            asked, least = _count(endpoint), 2 * math.ceil(count / _PAGE)
            what = f"{_WORKERS} workers list {count:,} keys ({kind}) of two slow sides"
            ratio, more = alone.seconds / together.seconds, asked / least
            rows += [
                Row(
                    what, f"{together.seconds:.1f} s", f"one worker {alone.seconds:.1f} s", ratio,
                    "at least 3", ratio >= 3,
                ),
                Row(
                    f"requests of that ({kind})", str(asked), f"pages {least}", more,
                    "at most 1.5", more <= 1.5,
                ),
            ]  # fmt: skip
    return rows


def _compare(endpoint: str, kind: str, concurrent: int, *, memory: bool = False) -> Taken:
    """A dry run by sizes: it lists both sides and joins them, and copies nothing."""
    options = [f"endpoint_url={endpoint}", "region=us-east-1"]
    words = [word for option in options for word in ("-o", option)]
    flags = ["-q", "-c", str(concurrent), "--dry-run", "--compare", "size", *words]
    sides = [f"s3://bench/{side}/{kind}/" for side in ("left", "right")]
    return measure([_s3.binary("calque") or "calque", "sync", *flags, *sides], memory=memory)


def _count(endpoint: str) -> int:
    with urllib.request.urlopen(f"{endpoint}/-/count") as answer:
        return int(answer.read())


@contextmanager
def _server(count: int, delay: float) -> Iterator[str]:
    command = [sys.executable, "-m", "bench._listing_server", str(count), str(delay)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()
