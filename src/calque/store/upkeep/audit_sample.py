"""Which segments an audit looks at: some for each node, larger ones more often.

Each segment draws a number from its root piece id and the run's seed, and those that drew the
smallest for their size are taken: so a sample does not depend on how the table is cut, and ranges
join by taking the smallest again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from heapq import nsmallest
from typing import NamedTuple

from calque.store.metabase.model.packed_pieces import unpack_if_readable
from calque.store.metabase.scan import Snapshot
from calque.store.upkeep.scan import Batch

SLOTS = 3
"""Segments for each node and run."""


class Drawn(NamedTuple):
    """A segment in the draw; the smallest ``lot`` wins."""

    lot: float
    stream_id: bytes
    position: int


@dataclass
class AuditSample:
    """An observer that draws ``slots`` segments for each node."""

    seed: bytes
    now: int
    slots: int = SLOTS
    columns: tuple[str, ...] = (
        "stream_id",
        "position",
        "root_piece_id",
        "encrypted_size",
        "remote_alias_pieces",
        "expires_at",
    )
    drawn: dict[int, list[Drawn]] = field(default_factory=dict)

    def start(self, snapshot: Snapshot) -> None:
        """Nothing to prepare."""

    def fork(self) -> _SampleFork:
        return _SampleFork(self.seed, self.now, self.slots)

    def join(self, result: Mapping[int, list[Drawn]]) -> None:
        for alias, found in result.items():
            self.drawn[alias] = nsmallest(self.slots, [*self.drawn.get(alias, ()), *found])

    def finish(self) -> None:
        """The sample is in ``drawn``."""

    @property
    def segments(self) -> list[tuple[bytes, int]]:
        """Each segment once, whichever nodes drew it."""
        return sorted({each[1:] for drawn in self.drawn.values() for each in drawn})


class _SampleFork:
    def __init__(self, seed: bytes, now: int, slots: int) -> None:
        self._seed, self._now, self._slots = seed, now, slots
        self._drawn: dict[int, list[Drawn]] = {}

    def process(self, batch: Batch) -> None:
        for stream_id, position, root, size, packed, expires in zip(
            *(batch[name] for name in AuditSample.columns), strict=True
        ):
            # A copy owns no piece, and what has expired may be gone already.
            if packed is None or (expires is not None and expires <= self._now):
                continue
            ticket = Drawn(self._draw(root, size), stream_id, position)
            for _, alias in unpack_if_readable(packed):
                self._drawn.setdefault(alias, []).append(ticket)
        for alias, found in self._drawn.items():
            self._drawn[alias] = nsmallest(self._slots, found)

    def result(self) -> dict[int, list[Drawn]]:
        return self._drawn

    def _draw(self, root: bytes, size: int) -> float:
        """Exponential with the size as its rate: the smallest of all is each by its share."""
        number = int.from_bytes(blake2b(root, key=self._seed, digest_size=8).digest(), "big")
        return -math.log((number + 1) / 2**64) / max(size, 1)
