"""Several segments are healed at once: while one waits for its disks, another one is built."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

from calque.store.metabase.upkeep.lease import Lease
from calque.store.upkeep.heal import Healed

T = TypeVar("T")

AT_ONCE = 3
"""Segments in the making: each holds some 16 MiB of shares that came early."""
_PAGE = 100


def heal_at_once(
    segments: Iterable[T],
    heal: Callable[[T], Healed],
    lease: Lease,
    over: Callable[[], bool],
) -> Iterator[Healed]:
    """What came of each, in order; without those that were not begun when ``over`` said so."""

    def heal_one(segment: T) -> Healed | None:
        if over():
            return None
        lease.require()
        return heal(segment)

    left = iter(segments)
    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="heal") as pool:
        while page := list(islice(left, _PAGE)):
            yield from (each for each in pool.map(heal_one, page) if each is not None)
