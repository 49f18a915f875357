"""What a node deletes by itself: pieces whose hour of expiry is over."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import datetime, timedelta

from calque.errors import CalqueError
from calque.store.nodes.node import Node
from calque.store.nodes.pieces import EXPIRIES, hour_of_path, piece_of_marker

GRACE = timedelta(hours=1)
"""Clocks differ, and a download may have begun: pieces stay this much longer."""

_log = logging.getLogger(__name__)


def delete_expired_pieces(node: Node, now: datetime, *, grace: timedelta = GRACE) -> int:
    """Delete the pieces that expired before ``now`` less the grace; how many markers were done.

    Markers are listed in the order of their hours, and listing ends at the first that is not over.
    The piece goes before its marker: a crash in between repeats a harmless delete. A piece that
    cannot be deleted is left for the next time, and the others go.
    """
    return sum(_delete_expired(node, piece, path) for path, piece in _over(node, now, grace))


def count_expired_pieces(node: Node, now: datetime, *, grace: timedelta = GRACE) -> int:
    """How many markers :func:`delete_expired_pieces` would do; nothing is changed."""
    return sum(1 for _ in _over(node, now, grace))


def _over(node: Node, now: datetime, grace: timedelta) -> Iterator[tuple[str, bytes]]:
    """Markers whose hour is over, and their pieces."""
    node.require_answer()
    # Reckoned back from now: an hour at the end of the calendar has none after it.
    over = now - grace - timedelta(hours=1)
    for entry in node.root.list(EXPIRIES):
        hour, piece = hour_of_path(entry.path), piece_of_marker(entry.path)
        if hour is None or piece is None:
            continue
        if hour > over:
            break
        yield entry.path, piece


def _delete_expired(node: Node, piece: bytes, marker: str) -> bool:
    try:
        node.delete(piece)
        node.root.delete(marker)
    except CalqueError as error:
        _log.warning("node %s keeps expired piece %s: %s", node.name, piece.hex(), error)
        return False
    return True
