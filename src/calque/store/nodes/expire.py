"""What a node deletes by itself: pieces whose hour of expiry is over."""

from __future__ import annotations

from datetime import datetime, timedelta

from calque.store.nodes.node import Node
from calque.store.nodes.pieces import EXPIRIES, hour_of_path, piece_of_marker

GRACE = timedelta(hours=1)
"""Clocks differ, and a download may have begun: pieces stay this much longer."""


def collect_expired(node: Node, now: datetime, *, grace: timedelta = GRACE) -> int:
    """Delete the pieces that expired before ``now`` less the grace; how many markers were done.

    Markers are listed in the order of their hours, and listing ends at the first that is not over.
    The piece goes before its marker: a crash in between repeats a harmless delete.
    """
    node.identity.require()
    collected = 0
    for entry in node.root.list(EXPIRIES):
        hour, piece = hour_of_path(entry.path), piece_of_marker(entry.path)
        if hour is None or piece is None:
            continue
        if hour + timedelta(hours=1) + grace > now:
            break
        node.delete(piece)
        node.root.delete(entry.path)
        collected += 1
    return collected
