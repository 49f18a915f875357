"""Which pieces each node must have: an observer that keeps them sorted on disk.

A piece is known by the first word of its digest, which two of millions hardly ever share; beside it
stand its size and the segment that names it, so that what is missing can be looked up.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from calque.store.metabase.model.packed_pieces import unpack_if_readable
from calque.store.metabase.model.records import ROOT_PIECE_ID_SIZE
from calque.store.metabase.scan import Snapshot
from calque.store.nodes.pieces import piece_digests
from calque.store.upkeep.scan import Batch
from calque.store.upkeep.sorted_runs import SortedRuns
from calque.store.upkeep.tally import piece_size

EXPECTED = np.dtype(
    [("key", "<u8"), ("size", "<i8"), ("stream", "V16"), ("position", "<i8"), ("expired", "?")]
)


@dataclass
class ExpectedPieces:
    """``nodes``: the id of each node by its alias. Rows that cannot be read are passed over.

    To be closed: until then ``runs`` has the pieces of each node, by its alias.
    """

    nodes: Mapping[int, bytes]
    now: int
    columns: tuple[str, ...] = (
        "stream_id",
        "position",
        "root_piece_id",
        "encrypted_size",
        "redundancy",
        "remote_alias_pieces",
        "expires_at",
    )
    runs: SortedRuns = field(default_factory=lambda: SortedRuns(EXPECTED))

    def start(self, snapshot: Snapshot) -> None:
        """Nothing to prepare."""

    def fork(self) -> _ExpectedFork:
        return _ExpectedFork(self.nodes, self.now)

    def join(self, result: Mapping[int, bytearray]) -> None:
        for alias, entries in result.items():
            self.runs.add(alias, np.frombuffer(entries, EXPECTED))

    def finish(self) -> None:
        """The runs are complete."""

    def close(self) -> None:
        self.runs.close()

    def __getstate__(self) -> dict[str, object]:
        # To a task goes what it needs, not what other ranges have found.
        return {name: value for name, value in self.__dict__.items() if name != "runs"}


class _ExpectedFork:
    def __init__(self, nodes: Mapping[int, bytes], now: int) -> None:
        self._nodes, self._now = nodes, now
        self._found: dict[int, bytearray] = {}

    def process(self, batch: Batch) -> None:
        found = defaultdict(list)
        for stream_id, position, root, size, redundancy, packed, expires in zip(
            *(batch[name] for name in ExpectedPieces.columns), strict=True
        ):
            expired = expires is not None and expires <= self._now
            for alias, digest in derive_digests(self._nodes, root, packed):
                each = piece_size(redundancy, size)
                found[alias].append((key_of(digest), each, bytes(stream_id), position, expired))
        for alias, entries in found.items():
            # An entry of its own would take five times the memory.
            packed_entries = np.array(entries, EXPECTED).tobytes()
            self._found.setdefault(alias, bytearray()).extend(packed_entries)

    def result(self) -> dict[int, bytearray]:
        return self._found


def derive_digests(
    nodes: Mapping[int, bytes], root: bytes, packed: bytes | None
) -> list[tuple[int, bytes]]:
    """The digests of a row's pieces by alias; damage and unknown nodes are other findings."""
    if packed is None:
        return []
    placed = [each for each in unpack_if_readable(packed) if each[1] in nodes]
    if len(root) != ROOT_PIECE_ID_SIZE:
        return []
    digests = piece_digests(root, [(number, nodes[alias]) for number, alias in placed])
    return [(alias, digest) for (_, alias), digest in zip(placed, digests, strict=True)]


def key_of(digest: bytes) -> int:
    """What a piece is known by here."""
    return int.from_bytes(digest[:8], "little")
