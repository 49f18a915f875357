"""Make the roots of a store's nodes known as theirs: once, when the store is made.

A process that is killed in between, and a store of an earlier release, leave roots without their
file. These are finished at the next opening, unless a root has lost what it is known to hold.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from calque.errors import CalqueError
from calque.store.metabase.engine.database import Database
from calque.store.metabase.objects.physical_segments import physical_segments
from calque.store.nodes.node import Node
from calque.store.nodes.pieces import PIECES, piece_of_path

_log = logging.getLogger(__name__)


def identify_nodes(nodes: Iterable[Node], database: Database) -> bool:
    """Write the identity of every root that has none; whether all have theirs now.

    A root without pieces, of a node that has some by the metadata, is a disk that is not mounted:
    it stays as it is. So does a root that does not answer, or that is another node's.
    """
    waiting = [node for node in nodes if not _has_identity(node)]
    empty = [node for node in waiting if not _holds_pieces(node)]
    needed = _nodes_with_pieces(database) if empty else set()
    left = [
        node for node in waiting if not _write_identity(node, node in empty and node.id in needed)
    ]
    return not left


def _has_identity(node: Node) -> bool:
    try:
        return node.ask(node.identity.read) == node.id
    except CalqueError:
        return False


def _holds_pieces(node: Node) -> bool:
    try:
        return node.ask(lambda: any(piece_of_path(each.path) for each in node.root.list(PIECES)))
    except CalqueError:
        return False


def _nodes_with_pieces(database: Database) -> set[bytes]:
    return {node for each in physical_segments(database) for _, node in each.pieces}


def _write_identity(node: Node, lost: bool) -> bool:
    if lost:
        _log.warning(
            "node %s shows no pieces although it should: is it mounted, does it answer?", node.name
        )
        return False
    try:
        node.ask(node.identity.write)
    except CalqueError as error:
        _log.warning("node %s cannot be used: %s", node.name, error)
        return False
    return True
