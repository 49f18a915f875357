"""Pieces that nobody refers to any more, deleted on their nodes as far as these answer.

What is left stays in the satellite's queue; deleting a piece again does no harm.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import partial

from calque.errors import CalqueError, Unsupported
from calque.store.nodes.node import Node, NodeDirectory
from calque.store.nodes.pieces import piece_id

PiecePlace = tuple[int, bytes, str]
"""A piece's number, its node's id, the node's address."""

_log = logging.getLogger(__name__)


class PieceDeletion:
    """One round of deleting, in which a node that does not answer is asked once."""

    def __init__(self, nodes: NodeDirectory) -> None:
        self._nodes = nodes
        self._silent: set[bytes] = set()

    def delete_pieces(
        self, root_piece_id: bytes, pieces: Iterable[PiecePlace]
    ) -> tuple[PiecePlace, ...]:
        """Delete the pieces of a segment; those that are left."""
        return tuple(each for each in pieces if not self._delete(root_piece_id, each))

    def _delete(self, root_piece_id: bytes, placed: PiecePlace) -> bool:
        number, node_id, address = placed
        if node_id in self._silent:
            return False
        try:
            node = self._nodes.get(node_id, address)
            if not isinstance(node, Node):
                raise Unsupported(f"nothing can be deleted on node {node.name} from here")
            piece = piece_id(root_piece_id, node_id, number)
            node.ask(partial(node.delete, piece))
        except CalqueError as error:
            _log.warning("pieces on node %s wait: %s", node_id.hex()[:12], error)
            self._silent.add(node_id)
            return False
        return True
