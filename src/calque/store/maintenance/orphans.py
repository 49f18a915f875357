"""Pieces that no row names: a killed upload leaves them, and so does one whose commit was refused.

A segment is committed within a day of its begin or never. So a piece that is two days old and that
no row names now belongs to nobody, and nobody can lay claim to it any more. Pieces are listed
before rows are read: what comes in between is young.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import datetime

from calque.errors import CalqueError
from calque.store.embedded import EmbeddedStore
from calque.store.metabase.model.records import moment
from calque.store.metabase.objects.physical_segments import physical_segments
from calque.store.nodes.check import COMMIT_WINDOW
from calque.store.nodes.node import Node
from calque.store.nodes.pieces import piece_id

MANY = 100

_log = logging.getLogger(__name__)


def remove_orphans(store: EmbeddedStore, *, many: bool = False) -> Iterator[int]:
    """Delete them node by node; yields how many went. A node that does not answer is passed over.

    Where most pieces of a node would go, and ``many`` does not say that this is meant, they stay: a
    database that was put back from an older day knows nothing of the pieces since.
    """
    now = moment(store.endpoint.database.clock())
    for node in store.nodes.direct():
        if store.endpoint.are_pieces_on_hold:
            return
        try:
            yield _remove_from(store, node, now, many)
        except CalqueError as error:
            _log.warning("the orphaned pieces of node %s wait: %s", node.name, error)


def _remove_from(store: EmbeddedStore, node: Node, now: datetime, many: bool) -> int:
    old = {each.piece for each in node.pieces() if _is_old(each.written, now)}
    if not old:
        return 0
    # After the listing: a segment that is committed in between has its row by now.
    named = _pieces_with_rows(store, node.id)
    orphans = sorted(old - named)
    if len(orphans) > max(MANY, len(named)) and not many:
        _log.warning(
            "%d pieces of node %s are named by no row, and only %d are: is this the right "
            "database? `calque store expire --all-orphans` removes them.",
            len(orphans), node.name, len(named),
        )  # fmt: skip
        return 0
    for piece in orphans:
        node.delete(piece)
    return len(orphans)


def _is_old(written: datetime | None, now: datetime) -> bool:
    return written is not None and now - written >= COMMIT_WINDOW


def _pieces_with_rows(store: EmbeddedStore, node_id: bytes) -> set[bytes]:
    return {
        piece_id(each.root_piece_id, holder, number)
        for each in physical_segments(store.endpoint.database)
        for number, holder in each.pieces
        if holder == node_id
    }
