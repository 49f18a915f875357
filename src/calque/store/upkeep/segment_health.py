"""The repair checker: an observer that sees which segments have too few healthy pieces.

Copies own no pieces, so an injured original is found once and its copies never. Below the threshold
of its redundancy a segment is injured. One above it is queued all the same, after those, when a
node that is gone for good had a piece of it: nothing will bring that piece back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import NamedTuple

from calque.store.metabase.model.packed_pieces import unpack_if_readable
from calque.store.metabase.model.records import Redundancy, readable_redundancy
from calque.store.metabase.scan import Snapshot
from calque.store.metabase.upkeep.repair_queue import InjuredSegment
from calque.store.upkeep.scan import Batch

MOST_A_RANGE = 20_000
"""Injured segments that one range names, the worst first; the next check finds the others."""


class HealthResult(NamedTuple):
    """What a range showed."""

    by_health: Counter[str]
    injured: list[InjuredSegment]
    lost: list[InjuredSegment]


@dataclass
class SegmentHealth:
    """``healthy``: aliases of the nodes whose pieces count; ``gone``: of those given up."""

    healthy: Collection[int]
    gone: Collection[int]
    now: int
    most: int = MOST_A_RANGE
    columns: tuple[str, ...] = (
        "stream_id",
        "position",
        "root_piece_id",
        "redundancy",
        "remote_alias_pieces",
        "expires_at",
    )
    by_health: Counter[str] = field(default_factory=Counter)
    injured: list[InjuredSegment] = field(default_factory=list)
    lost: list[InjuredSegment] = field(default_factory=list)

    def start(self, snapshot: Snapshot) -> None:
        """Nothing to prepare."""

    def fork(self) -> _HealthFork:
        return _HealthFork(frozenset(self.healthy), frozenset(self.gone), self.now, self.most)

    def join(self, result: HealthResult) -> None:
        self.by_health.update(result.by_health)
        self.injured += result.injured
        self.lost += result.lost

    def finish(self) -> None:
        """In one order, whatever the order of ranges."""
        for found in (self.injured, self.lost):
            found.sort(key=lambda each: (each.healthy, each.stream_id, each.position))


class _HealthFork:
    def __init__(self, healthy: frozenset[int], gone: frozenset[int], now: int, most: int) -> None:
        self._healthy, self._gone, self._now, self._most = healthy, gone, now, most
        self._found = HealthResult(Counter(), [], [])

    def process(self, batch: Batch) -> None:
        for stream_id, position, root, redundancy, packed, expires in zip(
            *(batch[name] for name in SegmentHealth.columns), strict=True
        ):
            # What has expired is about to go, and its nodes may have deleted it already.
            if packed is None or (expires is not None and expires <= self._now):
                continue
            scheme = readable_redundancy(redundancy)
            # Where nobody can tell which pieces it has, none is left.
            placed = unpack_if_readable(packed)
            aliases = [alias for _, alias in placed]
            count = sum(alias in self._healthy for alias in aliases)
            # Nor is any known to be enough where nobody can tell how many it needs, or which.
            if scheme is None or not placed or placed[-1][0] >= scheme.total:
                kind = "lost"
            else:
                kind = _kind(count, scheme)
            self._found.by_health[kind] += 1
            if kind == "lost":
                self._found.lost.append(InjuredSegment(stream_id, position, root, count))
            elif kind == "injured" or not self._gone.isdisjoint(aliases):
                self._found.injured.append(InjuredSegment(stream_id, position, root, count))

    def result(self) -> HealthResult:
        for found in (self._found.injured, self._found.lost):
            found.sort(key=lambda each: each.healthy)
            del found[self._most :]
        return self._found


def _kind(count: int, scheme: Redundancy) -> str:
    if count < scheme.required:
        return "lost"
    if count < scheme.repair:
        return "injured"
    return "whole" if count >= scheme.total else "reduced"
