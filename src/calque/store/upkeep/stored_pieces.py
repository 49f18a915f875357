"""Pieces on nodes against rows: what is missing, what is damaged in size, what is orphaned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from calque.errors import CalqueError
from calque.store.embedded import EmbeddedStore
from calque.store.metabase.accounts.nodes import Nodes
from calque.store.metabase.fsck import Finding
from calque.store.metabase.model.records import moment
from calque.store.metabase.scan import Snapshot
from calque.store.metabase.upkeep.replace_pieces import read_owned
from calque.store.nodes.commit_window import COMMIT_WINDOW
from calque.store.nodes.node import Node, StoredPiece
from calque.store.nodes.pieces import PIECE_NAMES, piece_id
from calque.store.nodes.sweeps import sweep_node
from calque.store.upkeep.expected_pieces import (
    ExpectedPieces,
    PiecesOfOneNode,
    derive_digests,
    key_of,
)

_ROW = ("stream_id", "position", "root_piece_id", "remote_alias_pieces")


@dataclass(frozen=True, slots=True)
class PieceCheck:
    """Compares the nodes of a store with what an observer of its snapshot expects of them.

    Rows are read first: a piece that comes later is young, and young pieces are no orphans. What
    is gone since is looked up again before it is called missing.
    """

    store: EmbeddedStore
    expected: ExpectedPieces
    young: bool = False

    def run(self, snapshot: Snapshot) -> Iterator[Finding]:
        """Everything that is wrong. Of a node that does not answer that is all that is said."""
        waiting, gone = self._waiting(), self._gone()
        missing: dict[int, frozenset[int]] = {}
        nodes = {node.id: node for node in self.store.nodes.direct()}
        for alias, node_id in self.expected.nodes.items():
            wanted, node = self.expected.by_node[node_id], nodes.get(node_id)
            if node is not None:
                try:
                    found = sweep_node(node, partial(self._compare, wanted=wanted, waiting=waiting))
                    # What a node that is given up still has is nobody's, and nobody collects it.
                    yield from (
                        each
                        for each in found
                        if node_id not in gone or each.kind != "orphaned piece"
                    )
                except CalqueError as error:
                    yield Finding("node that does not answer", f"{node.name}: {error.message}")
                    continue
            missing[alias] = wanted.missing()
        yield from self._name_missing(snapshot, missing, nodes)

    def _compare(
        self, node: Node, wanted: PiecesOfOneNode, waiting: set[tuple[bytes, bytes]]
    ) -> list[Finding]:
        now = moment(self.store.endpoint.database.clock())
        findings = []
        for stored in node.pieces():
            found = wanted.look(stored.piece)
            where = f"{stored.piece.hex()} on node {node.name}"
            if found.expected and found.size != stored.size:
                told = f"{where}: {stored.size} bytes, {found.size} expected"
                findings.append(Finding("piece of the wrong size", told))
            elif not found.expected and not self._is_excused(node, stored, waiting, now):
                findings.append(Finding("orphaned piece", where))
        return findings

    def _is_excused(
        self, node: Node, stored: StoredPiece, waiting: set[tuple[bytes, bytes]], now: datetime
    ) -> bool:
        """A piece that is to be deleted anyway, or that may belong to an upload under way."""
        window = timedelta(0) if self.young else COMMIT_WINDOW
        is_young = stored.written is not None and now - stored.written < window
        return is_young or (node.id, stored.piece) in waiting

    def _gone(self) -> set[bytes]:
        return {each.node_id for each in Nodes(self.store.endpoint.database).at(0, {"gone"})}

    def _waiting(self) -> set[tuple[bytes, bytes]]:
        return {
            (node_id, piece_id(each.root_piece_id, node_id, number))
            for each in self.store.endpoint.list_waiting_pieces()
            for number, node_id, _ in each.pieces
        }

    def _name_missing(
        self,
        snapshot: Snapshot,
        missing: Mapping[int, frozenset[int]],
        reachable: Mapping[bytes, Node],
    ) -> Iterator[Finding]:
        if not any(missing.values()):
            return
        nodes = self.expected.nodes
        with snapshot.reader() as reader:
            for each in snapshot.cut():
                for rows in reader.read(each, _ROW):
                    for stream_id, position, root, packed in rows:
                        lost = [
                            (alias, digest)
                            for alias, digest in derive_digests(nodes, root, packed)
                            if key_of(digest) in missing.get(alias, frozenset())
                        ]
                        if lost and self._is_still_so(stream_id, position, packed):
                            for alias, digest in lost:
                                yield _missing(nodes[alias], digest, nodes[alias] in reachable)

    def _is_still_so(self, stream_id: bytes, position: int, packed: bytes) -> bool:
        """Whether the segment is there and has its pieces where it had them."""
        family = read_owned(self.store.endpoint.database, bytes(stream_id), position)
        return family is not None and family.segment.alias_pieces == bytes(packed)


def _missing(node_id: bytes, digest: bytes, reachable: bool) -> Finding:
    kind = "missing piece" if reachable else "piece on an unknown node"
    return Finding(kind, f"{PIECE_NAMES:02x}{digest.hex()} on node {node_id.hex()[:12]}")


def expect_pieces(store: EmbeddedStore) -> ExpectedPieces:
    """The observer for the nodes that the store knows now."""
    database = store.endpoint.database
    nodes = {each.alias: each.node_id for each in Nodes(database).all()}
    return ExpectedPieces(nodes, database.clock())
