"""Pieces on nodes against rows: what is missing, what is damaged in size, what is orphaned.

Both are brought into one order on disk, so memory stays the same however many there are, and
whatever order a node lists its pieces in.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from calque.errors import Aborted, CalqueError
from calque.store.embedded import EmbeddedStore
from calque.store.metabase.accounts.nodes import Nodes
from calque.store.metabase.fsck import MOST, Finding
from calque.store.metabase.upkeep.replace_pieces import read_owned
from calque.store.nodes.commit_window import COMMIT_WINDOW
from calque.store.nodes.node import Node, StoredPiece
from calque.store.nodes.pieces import PIECE_ID_SIZE, PIECE_NAMES, piece_id
from calque.store.nodes.sweeps import sweep_node
from calque.store.satellite.freed_pieces import never_over
from calque.store.upkeep.expected_pieces import ExpectedPieces, derive_digests, key_of
from calque.store.upkeep.scan import Over
from calque.store.upkeep.sorted_runs import SLICE, SortedRuns, slices_for

STORED = np.dtype(
    [("key", "<u8"), ("piece", f"V{PIECE_ID_SIZE}"), ("size", "<i8"), ("written", "<f8")]
)
"""``written``: seconds, or no number where nobody knows."""

Waiting = set[tuple[bytes, bytes]]
"""Pieces that are to be deleted anyway, with the ids of their nodes."""


@dataclass(frozen=True, slots=True)
class PieceCheck:
    """Compares the nodes of a store with what an observer of its snapshot expects of them.

    Rows are read first: a piece that comes later is young, and young pieces are no orphans. What
    is gone since is looked up again before it is called missing.
    """

    store: EmbeddedStore
    expected: ExpectedPieces
    young: bool = False
    over: Over = never_over

    def run(self) -> Iterator[Finding]:
        """What is wrong: of each node the first thousand of a kind.

        Of a node that does not answer that is all that is said. Aborted when ``over`` said so.
        """
        waiting, gone = self._waiting(), self._gone()
        nodes = {node.id: node for node in self.store.own_nodes()}
        for alias, node_id in self.expected.nodes.items():
            node = nodes.get(node_id)
            if node_id in gone and not self.expected.runs.count(alias):
                continue  # it may be switched off
            with closing(SortedRuns(STORED)) as there:
                try:
                    if node is not None:
                        sweep_node(node, partial(self._list_pieces, into=there, group=alias))
                except CalqueError as error:
                    yield Finding(
                        "node that does not answer", f"{node_id.hex()[:12]}: {error.message}"
                    )
                    continue
                if self.over():
                    raise Aborted("the check of the nodes was stopped")
                # What a node that is given up still has is nobody's, and nobody collects it.
                orphans = None if node is None or node_id in gone else waiting
                yield from self._compare(alias, there, orphans, reachable=node is not None)

    def _list_pieces(self, node: Node, into: SortedRuns, group: int) -> None:
        """Every piece of a node, onto the disk."""
        pieces = node.pieces()
        while some := [_entry(each) for each in islice(pieces, SLICE)]:
            into.add(group, np.array(some, STORED))
            if self.over():
                return

    def _compare(
        self, alias: int, there: SortedRuns, waiting: Waiting | None, *, reachable: bool
    ) -> Iterator[Finding]:
        wanted, told = self.expected.runs, Counter[str]()
        slices = slices_for(wanted.count(alias), there.count(alias))
        for expected, stored in zip(
            wanted.slices(alias, slices), there.slices(alias, slices), strict=True
        ):
            for findings in (
                self._resized(alias, expected, stored),
                self._orphaned(alias, expected, stored, waiting),
                self._missing(alias, expected, stored, reachable),
            ):
                for each in findings:
                    if told[each.kind] == MOST:
                        break
                    told[each.kind] += 1
                    yield each

    def _resized(
        self, alias: int, expected: NDArray[np.void], stored: NDArray[np.void]
    ) -> Iterator[Finding]:
        both = stored[np.isin(stored["key"], expected["key"])]
        sizes = expected["size"][np.searchsorted(expected["key"], both["key"])]
        for each, size in zip(
            both[both["size"] != sizes], sizes[both["size"] != sizes], strict=True
        ):
            told = f"{self._where(alias, each)}: {each['size']} bytes, {size} expected"
            yield Finding("piece of the wrong size", told)

    def _orphaned(
        self,
        alias: int,
        expected: NDArray[np.void],
        stored: NDArray[np.void],
        waiting: Waiting | None,
    ) -> Iterator[Finding]:
        if waiting is None:
            return
        node_id = self.expected.nodes[alias]
        window = timedelta(0) if self.young else COMMIT_WINDOW
        older = self.store.endpoint.database.clock() / 1_000_000 - window.total_seconds()
        # One that may belong to an upload under way is none; a time that is no number is not young.
        is_young = stored["written"] > older
        for each in stored[~np.isin(stored["key"], expected["key"]) & ~is_young]:
            if (node_id, each["piece"].tobytes()) not in waiting:
                yield Finding("orphaned piece", self._where(alias, each))

    def _missing(
        self,
        alias: int,
        expected: NDArray[np.void],
        stored: NDArray[np.void],
        reachable: bool,
    ) -> Iterator[Finding]:
        kind = "missing piece" if reachable else "piece on an unknown node"
        node_id = self.expected.nodes[alias]
        for each in expected[~np.isin(expected["key"], stored["key"]) & ~expected["expired"]]:
            digest = self._find_digest(alias, each)
            if digest is not None:
                where = f"{PIECE_NAMES:02x}{digest.hex()} on node {node_id.hex()[:12]}"
                yield Finding(kind, where)

    def _find_digest(self, alias: int, expected: np.void) -> bytes | None:
        """What the segment calls this piece now; None where it does not name it any more."""
        database = self.store.endpoint.database
        family = read_owned(database, expected["stream"].tobytes(), int(expected["position"]))
        if family is None:
            return None
        root, packed = family.segment.root_piece_id, family.segment.alias_pieces
        named = derive_digests(self.expected.nodes, root, packed)
        return next(
            (digest for at, digest in named if (at, key_of(digest)) == (alias, expected["key"])),
            None,
        )

    def _where(self, alias: int, stored: np.void) -> str:
        return f"{stored['piece'].tobytes().hex()} on node {self.expected.nodes[alias].hex()[:12]}"

    def _gone(self) -> set[bytes]:
        return {each.node_id for each in Nodes(self.store.endpoint.database).at(0, {"gone"})}

    def _waiting(self) -> Waiting:
        return {
            (node_id, piece_id(each.root_piece_id, node_id, number))
            for each in self.store.endpoint.list_waiting_pieces()
            for number, node_id, _ in each.pieces
        }


def _entry(stored: StoredPiece) -> tuple[int, bytes, int, float]:
    written = math.nan if stored.written is None else stored.written.timestamp()
    return key_of(stored.piece[1:]), stored.piece, stored.size, written


def expect_pieces(store: EmbeddedStore) -> ExpectedPieces:
    """The observer for the nodes that the store knows now."""
    database = store.endpoint.database
    nodes = {each.alias: each.node_id for each in Nodes(database).all()}
    return ExpectedPieces(nodes, database.clock())
