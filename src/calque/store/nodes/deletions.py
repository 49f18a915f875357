"""Pieces that nobody refers to any more: deleted now, or kept in mind until their node answers.

The satellite reports each physical piece once, after the transaction that let it go. What cannot
be deleted at once is written down, one small file a batch, beneath an Operator root; the file
goes when its pieces are gone. A crash between the report and this note leaves pieces that ``fsck``
shows as orphans: bytes may linger, nothing is lost.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from calque.errors import CalqueError, NotFound, Unsupported
from calque.operator import Operator
from calque.store.nodes.node import Node, NodeDirectory
from calque.store.nodes.pieces import piece_id

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Doomed:
    """One piece to delete, and where it lies."""

    piece: bytes
    node_id: bytes
    address: str

    @classmethod
    def of(cls, root_piece_id: bytes, number: int, node_id: bytes, address: str) -> Doomed:
        return cls(piece_id(root_piece_id, node_id, number), node_id, address)


class Deletions:
    """Deletes reported pieces, remembering those whose node does not answer."""

    def __init__(self, notes: Operator, nodes: NodeDirectory) -> None:
        self._notes = notes
        self._nodes = nodes

    def delete(self, doomed: Iterable[Doomed]) -> int:
        """Delete pieces; those left are written down. How many are gone."""
        gone, left = self._try(doomed)
        if left:
            self._note(left)
        return gone

    def retry(self) -> int:
        """Go through what was written down; how many pieces are gone now."""
        total = 0
        for path, doomed in self._read_notes():
            gone, left = self._try(doomed)
            total += gone
            if not left:
                self._notes.delete(path)
            elif gone:
                self._notes.write(path, _text(left))
        return total

    def waiting(self) -> list[Doomed]:
        """The pieces that are written down."""
        return [each for _, doomed in self._read_notes() for each in doomed]

    def _read_notes(self) -> Iterator[tuple[str, list[Doomed]]]:
        for entry in list(self._notes.list()):
            try:
                yield entry.path, _read(self._notes.read(entry.path))
            except NotFound:  # another process was quicker
                continue
            except ValueError:
                _log.warning("%s cannot be read: its pieces are orphans", entry.path)

    def _try(self, doomed: Iterable[Doomed]) -> tuple[int, list[Doomed]]:
        """A node that does not answer is asked once, not once for each of its pieces."""
        gone, left, silent = 0, list[Doomed](), set[bytes]()
        for each in doomed:
            if each.node_id in silent:
                left.append(each)
                continue
            try:
                self._delete(each)
                gone += 1
            except CalqueError as error:
                _log.warning("pieces on node %s wait: %s", each.node_id.hex()[:12], error)
                silent.add(each.node_id)
                left.append(each)
        return gone, left

    def _delete(self, doomed: Doomed) -> None:
        node = self._nodes.get(doomed.node_id, doomed.address)
        if not isinstance(node, Node):
            raise Unsupported(f"nothing can be deleted on node {node.name} from here")
        node.delete(doomed.piece)

    def _note(self, left: Sequence[Doomed]) -> None:
        try:
            self._notes.write(f"{uuid.uuid4().hex}.json", _text(left))
        except CalqueError as error:
            # The rows are gone already: the caller's delete is done, and fsck finds the orphans.
            _log.error("%d pieces cannot be written down to be deleted: %s", len(left), error)


def _text(doomed: Sequence[Doomed]) -> bytes:
    return json.dumps(
        [[each.piece.hex(), each.node_id.hex(), each.address] for each in doomed]
    ).encode()


def _read(text: bytes) -> list[Doomed]:
    return [
        Doomed(bytes.fromhex(piece), bytes.fromhex(node), address)
        for piece, node, address in json.loads(text)
    ]
