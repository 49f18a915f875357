"""Which pieces each node must have: an observer that keeps 17 bytes of each piece.

A piece is known by the first word of its digest, which two of millions hardly ever share; its size
stands beside it. What is missing is named by a second look at the rows, and only then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from calque.store.metabase.model.packed_pieces import unpack_if_readable
from calque.store.metabase.scan import Snapshot
from calque.store.nodes.pieces import piece_digests
from calque.store.upkeep.scan import Batch
from calque.store.upkeep.tally import piece_size

_ENTRY = np.dtype([("key", "<u8"), ("size", "<i8"), ("expired", "?")])


class Looked(NamedTuple):
    """What a listing showed of one piece."""

    expected: bool
    size: int
    """That it should have."""


@dataclass
class ExpectedPieces:
    """``nodes``: the id of each node by its alias. Rows that cannot be read are passed over."""

    nodes: Mapping[int, bytes]
    now: int
    columns: tuple[str, ...] = (
        "root_piece_id",
        "encrypted_size",
        "redundancy",
        "remote_alias_pieces",
        "expires_at",
    )
    _parts: dict[int, list[bytes]] = field(default_factory=lambda: defaultdict(list))
    by_node: dict[bytes, PiecesOfOneNode] = field(default_factory=dict)

    def start(self, snapshot: Snapshot) -> None:
        """Nothing to prepare."""

    def fork(self) -> _ExpectedFork:
        return _ExpectedFork(self.nodes, self.now)

    def join(self, result: Mapping[int, bytes]) -> None:
        for alias, entries in result.items():
            self._parts[alias].append(entries)

    def finish(self) -> None:
        """Sort the pieces of each node, so that a listing can be compared with them."""
        for alias, node_id in self.nodes.items():
            entries = np.frombuffer(b"".join(self._parts.pop(alias, [])), _ENTRY)
            self.by_node[node_id] = PiecesOfOneNode(np.sort(entries, order="key"))


class _ExpectedFork:
    def __init__(self, nodes: Mapping[int, bytes], now: int) -> None:
        self._nodes, self._now = nodes, now
        self._found: dict[int, list[tuple[bytes, int, bool]]] = defaultdict(list)

    def process(self, batch: Batch) -> None:
        for root, size, redundancy, packed, expires in zip(
            *(batch[name] for name in ExpectedPieces.columns), strict=True
        ):
            expired = expires is not None and expires <= self._now
            for alias, digest in derive_digests(self._nodes, root, packed):
                entry = (digest[:8], piece_size(redundancy, size), expired)
                self._found[alias].append(entry)

    def result(self) -> dict[int, bytes]:
        return {alias: _pack(entries) for alias, entries in self._found.items()}


def derive_digests(
    nodes: Mapping[int, bytes], root: bytes, packed: bytes | None
) -> list[tuple[int, bytes]]:
    """The digests of a row's pieces by alias; damage and unknown nodes are other findings."""
    if packed is None:
        return []
    placed = [each for each in unpack_if_readable(packed) if each[1] in nodes]
    digests = piece_digests(root, [(number, nodes[alias]) for number, alias in placed])
    return [(alias, digest) for (_, alias), digest in zip(placed, digests, strict=True)]


def _pack(entries: Iterable[tuple[bytes, int, bool]]) -> bytes:
    rows = [(int.from_bytes(key, "little"), size, expired) for key, size, expired in entries]
    return np.array(rows, _ENTRY).tobytes()


class PiecesOfOneNode:
    """What one node must have, and which of it was seen."""

    def __init__(self, entries: NDArray[np.void]) -> None:
        # Each column by itself: a search in a column of a table would copy it first.
        self._keys, self._sizes, self._expired = (
            np.ascontiguousarray(entries[name]) for name in ("key", "size", "expired")
        )
        self._seen = np.zeros(len(entries), np.bool_)

    def look(self, piece: bytes) -> Looked:
        """Compare a piece that is there, and remember it."""
        key = np.uint64(key_of(piece[1:]))
        at = int(np.searchsorted(self._keys, key))
        if at == len(self._keys) or self._keys[at] != key:
            return Looked(False, 0)
        self._seen[at] = True
        return Looked(True, int(self._sizes[at]))

    def missing(self) -> frozenset[int]:
        """Keys of pieces that were not seen, and have not expired."""
        return frozenset(self._keys[~self._seen & ~self._expired].tolist())


def key_of(digest: bytes) -> int:
    """What a piece is known by here."""
    return int.from_bytes(digest[:8], "little")
