"""What a node deletes by itself: pieces whose hour of expiry is over."""

from __future__ import annotations

import logging
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
    node.require_answer()
    collected = 0
    # Reckoned back from now: an hour at the end of the calendar has none after it.
    over = now - grace - timedelta(hours=1)
    for entry in node.root.list(EXPIRIES):
        hour, piece = hour_of_path(entry.path), piece_of_marker(entry.path)
        if hour is None or piece is None:
            continue
        if hour > over:
            break
        collected += _delete_expired(node, piece, entry.path)
    return collected


def _delete_expired(node: Node, piece: bytes, marker: str) -> bool:
    try:
        node.delete(piece)
        node.root.delete(marker)
    except CalqueError as error:
        _log.warning("node %s keeps expired piece %s: %s", node.name, piece.hex(), error)
        return False
    return True
