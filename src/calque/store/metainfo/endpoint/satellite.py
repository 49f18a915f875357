"""What the calls share: the database, nodes, settings, signer, metrics and clean-up."""

from __future__ import annotations

import logging
import os
import random
from collections.abc import Callable, Sequence

from calque.errors import CalqueError, FailedPrecondition, InvalidInput, PermissionDenied
from calque.store.metabase.database import Database
from calque.store.metabase.freed_segments import freed_pages, settle_freed
from calque.store.metabase.nodes import NodeRecord, Nodes
from calque.store.metabase.projects import keep_setting
from calque.store.metabase.promotion import FreedSegment
from calque.store.metabase.values import DeletedPieces, Redundancy
from calque.store.metainfo.caller import Caller, Gatekeeper
from calque.store.metainfo.metrics import Metrics
from calque.store.metainfo.pb import tokens_pb2 as tokens
from calque.store.metainfo.settings import SatelliteSettings
from calque.store.metainfo.tokens import Signer

DeletePieces = Callable[[Sequence[DeletedPieces]], Sequence[DeletedPieces]]
"""Deletes pieces on their nodes; gives back those that are left, to be tried again later."""

_log = logging.getLogger(__name__)


def keep_pieces(freed: Sequence[DeletedPieces]) -> Sequence[DeletedPieces]:
    """Leave freed pieces on their nodes and in the queue, for another process to delete."""
    return freed


class Satellite:
    """One satellite's parts; the functions of the calls get it as their first argument."""

    def __init__(
        self, database: Database, settings: SatelliteSettings, delete_pieces: DeletePieces
    ) -> None:
        self.database = database
        self.settings = settings
        self.nodes = Nodes(database)
        self.signer = Signer(keep_setting(database, "signing_secret", os.urandom(32)))
        self.gatekeeper = Gatekeeper(database)
        self.metrics = Metrics()
        self._delete_pieces = delete_pieces

    def free(self, freed: Sequence[FreedSegment]) -> int:
        """Have the pieces of committed deletes removed; how many are gone.

        Called after the transaction, which stands whatever happens here: what fails stays in
        the queue.
        """
        if not freed:
            return 0
        try:
            doomed = self.nodes.freed(freed)
            left = self._delete_pieces(doomed)
            settle_freed(self.database, freed, self.nodes.packed(left))
        except CalqueError as error:
            _log.warning("the pieces of %d segments wait: %s", len(freed), error)
            return 0
        return _count(doomed) - _count(left)

    def free_waiting(self, most: int | None = None) -> int:
        """Go once through the queue, or ``most`` segments of it; how many pieces are gone."""
        gone = seen = 0
        for page in freed_pages(self.database):
            if most is not None and seen >= most:
                break
            gone += self.free(page)
            seen += len(page)
        return gone

    def open_upload(self, caller: Caller, upload_id: bytes) -> tokens.UploadToken:
        """The upload behind a signed id, if it is the caller's project's."""
        upload = self.signer.open(tokens.UploadToken, upload_id, "upload id")
        if upload.project_id != caller.project_id:
            raise PermissionDenied("the upload belongs to another project")
        return upload

    def choose_nodes(self, placement: int, scheme: Redundancy) -> list[NodeRecord]:
        """Nodes for a new segment, a different one for each piece, in random order."""
        there = self.nodes.at(placement)
        if len(there) < scheme.success:
            self.nodes.refresh()
            there = self.nodes.at(placement)
        if len(there) < scheme.success:
            raise FailedPrecondition(
                f"a segment needs {scheme.success} nodes, placement {placement} has {len(there)}",
                hint="Register more storage nodes or lower the redundancy.",
            )
        return random.sample(there, min(scheme.total, len(there)))


def _count(segments: Sequence[DeletedPieces]) -> int:
    return sum(len(each.pieces) for each in segments)


def page_limit(asked: int, most: int) -> int:
    """A page size: zero means the most there is; negative is refused."""
    if asked < 0:
        raise InvalidInput(f"limit {asked} is negative")
    return min(asked or most, most)
