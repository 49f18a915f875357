"""How full the queue of parts is kept: against the least time that latency and concurrency allow.

The memory service answers at once; a layer holds each part for as long as a far server would. The
least time is parts × latency ÷ concurrency. The peer is the way parts are often copied: in batches
that wait for their slowest.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from bench.table import Row, alternate, asked_scale, show
from calque.operator import Operator
from calque.operator.layers.chain import Call

T = TypeVar("T")
LATENCY, PARTS = 0.02, 320


class Distance:
    """Holds each part for the latency, more or less by half."""

    def __call__(self, call: Call, proceed: Callable[[Call], T]) -> T:
        if call.verb == "copy_part":
            time.sleep(LATENCY * random.uniform(0.5, 1.5))
        return proceed(call)


def run(scale: float = 1.0) -> list[Row]:
    """A copy of many parts at several concurrencies."""
    parts = max(32, int(PARTS * scale))
    op = Operator.from_uri("memory://", layers=(Distance(),), threshold=1, part_size=1)
    op.write("from", bytes(parts))
    return [_row(op, parts, concurrent) for concurrent in (4, 16)]


def _row(op: Operator, parts: int, concurrent: int) -> Row:
    least = parts * LATENCY / concurrent
    ours, batched = alternate(
        3,
        lambda: op.copy("from", "to", concurrent=concurrent),
        lambda: _in_batches(parts, concurrent),
    )
    return Row(
        what=f"{parts} parts of {LATENCY * 1000:.0f} ms at concurrent={concurrent}",
        ours=f"{ours:.2f} s",
        peer=f"least time {least:.2f} s (in batches: {batched:.2f} s)",
        ratio=ours / least,
        wanted="at most 1.2 of the least time",
        met=ours / least <= 1.2,
    )


def _in_batches(parts: int, concurrent: int) -> None:
    def part(_: int) -> None:
        time.sleep(LATENCY * random.uniform(0.5, 1.5))

    with ThreadPoolExecutor(concurrent) as pool:
        for start in range(0, parts, concurrent):
            list(pool.map(part, range(min(concurrent, parts - start))))


def main() -> None:
    show("Parts in flight", run(asked_scale()))


if __name__ == "__main__":
    main()
