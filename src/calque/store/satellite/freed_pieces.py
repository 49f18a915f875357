"""After the commit: pieces that a transaction queued are deleted on their nodes.

The transaction stands, whatever happens here: what fails stays in the queue. What is deleted is
taken off the queue later, many rows at once, so that a delete waits for the disk once and not
twice. A process that is killed before leaves rows of pieces that are gone already, and deleting
those again does no harm.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from calque.errors import CalqueError, IntegrityError
from calque.store.callers import act_for_caller
from calque.store.metabase.accounts.nodes import Nodes
from calque.store.metabase.engine.database import Database
from calque.store.metabase.model.records import ROOT_PIECE_ID_SIZE, DeletedPieces, FreedSegment
from calque.store.metabase.objects.freed_segments import list_freed, settle_freed
from calque.store.metabase.objects.hold_pieces import HeldPieces

DeletePieces = Callable[[Sequence[DeletedPieces]], Sequence[DeletedPieces]]
"""Deletes pieces on their nodes; gives back those that are left, to be tried again later."""

SETTLE_AT = 100
"""So many segments are taken off the queue at once."""

_log = logging.getLogger(__name__)


def never_over() -> bool:
    """For work that is brought to its end."""
    return False


def keep_pieces(freed: Sequence[DeletedPieces]) -> Sequence[DeletedPieces]:
    """Leave freed pieces on their nodes and in the queue, for another process to delete."""
    return freed


class FreedPieces:
    """The pieces of one satellite that are to be deleted. Safe to share between threads."""

    def __init__(self, database: Database, nodes: Nodes, delete_pieces: DeletePieces) -> None:
        self._database = database
        self._nodes = nodes
        self._delete_pieces = delete_pieces
        self._held = HeldPieces(database)
        self._lock = threading.Lock()
        self._tried: list[FreedSegment] = []
        self._left: list[FreedSegment] = []

    @property
    def is_on_hold(self) -> bool:
        """Whether pieces are to stay on their nodes for now; also when nobody can tell."""
        try:
            return bool(self._held)
        except CalqueError as error:
            _log.warning("no piece is deleted: %s", error)
            return True

    def free(self, freed: Sequence[FreedSegment]) -> int:
        """Delete the pieces of queued segments; how many pieces are gone.

        A row that cannot be read stays in the queue, and the others go. All stay while a backup
        holds the pieces.
        """
        if self.is_on_hold:
            return 0
        freed = [each for each in freed if self._readable(each)]
        if not freed:
            return 0
        try:
            doomed = self._nodes.pieces_to_delete(freed)
            left = self._delete_pieces(doomed)
            waiting = self._nodes.pack_deleted(left)
            with self._lock:
                self._tried.extend(freed)
                self._left.extend(waiting)
                full = len(self._tried) >= SETTLE_AT
            if full:
                self.settle()
        except CalqueError as error:
            _log.warning("the pieces of %d segments wait: %s", len(freed), error)
            return 0
        return _count(doomed) - _count(left)

    def free_waiting(self, most: int | None = None, over: Callable[[], bool] = never_over) -> int:
        """Go once through the queue, or ``most`` segments of it; how many pieces are gone.

        Ends early, between two pages, when ``over`` says so.
        """
        # First, or the rows of what is deleted already would be read again as work to do.
        self.settle()
        self._nodes.refresh()  # which of them are given up by now
        gone = seen = 0
        for page in list_freed(self._database):
            if over() or (most is not None and seen >= most):
                break
            gone += self.free(page)
            seen += len(page)
        self.settle()
        return gone

    def list_waiting(self) -> list[DeletedPieces]:
        """The pieces that are still to be deleted."""
        self.settle()
        return [
            each
            for page in list_freed(self._database)
            for each in self._nodes.pieces_to_delete(filter(self._readable, page))
        ]

    def _readable(self, freed: FreedSegment) -> bool:
        problem: object = "its root piece id is damaged"
        try:
            self._nodes.unpack(freed.alias_pieces)
            if len(freed.root_piece_id) == ROOT_PIECE_ID_SIZE:
                return True
        except IntegrityError as error:
            problem = error
        _log.warning("pieces of %s wait: %s", freed.root_piece_id.hex(), problem)
        return False

    def settle(self) -> None:
        """Take what was deleted off the queue."""
        # Taken away under the lock, written outside it: a slow database holds nobody else up. What
        # a crash loses here is still in the queue, and is deleted once more.
        with self._lock:
            tried, left = self._tried, self._left
            self._tried, self._left = [], []
        try:
            # The pieces are gone whether or not the caller still waits, so the write is not
            # given up with the call.
            with act_for_caller(None):
                settle_freed(self._database, tried, left)
        except CalqueError as error:
            _log.warning("%d segments stay in the queue of pieces to delete: %s", len(tried), error)


def _count(segments: Sequence[DeletedPieces]) -> int:
    return sum(len(each.pieces) for each in segments)
