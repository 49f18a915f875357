"""What the calls share: the database, nodes, settings, signer, metrics and clean-up."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence

from calque.errors import FailedPrecondition, InvalidInput, PermissionDenied
from calque.store.metabase.accounts.nodes import (
    COUNTS_AS_HEALTHY,
    LEAVING,
    TAKES_PIECES,
    NodeRecord,
    Nodes,
)
from calque.store.metabase.accounts.projects import keep_setting
from calque.store.metabase.engine.database import Database
from calque.store.metabase.model.records import FreedSegment, Redundancy
from calque.store.metainfo.pb import tokens_pb2 as tokens
from calque.store.satellite.caller import Caller, Gatekeeper
from calque.store.satellite.freed_pieces import DeletePieces, FreedPieces
from calque.store.satellite.metrics import Metrics
from calque.store.satellite.open_pieces import OpenPieces
from calque.store.satellite.piece_deleter import PieceDeleter
from calque.store.satellite.settings import SatelliteSettings
from calque.store.satellite.signer import Signer

_SPARE_TOKENS = 128
"""At most so many are signed for the spare nodes of a segment: one for each piece on each."""


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
        self.open_pieces = OpenPieces(database.clock)
        self.freed_pieces = FreedPieces(database, self.nodes, delete_pieces)
        self.deleter: PieceDeleter | None = None

    def free(self, freed: Sequence[FreedSegment]) -> None:
        """Have the pieces of committed deletes removed; called after the transaction."""
        deleter = self.deleter  # looked at once: the server may stop between two looks
        if not freed or (deleter is not None and deleter.take(freed)):
            return
        self.freed_pieces.free(freed)

    def open_upload(self, caller: Caller, upload_id: bytes) -> tokens.UploadToken:
        """The upload behind a signed id, if it is the caller's project's."""
        upload = self.signer.open(tokens.UploadToken, upload_id, "upload id")
        if upload.project_id != caller.project_id:
            raise PermissionDenied("the upload belongs to another project")
        return upload

    def choose_nodes(
        self, placement: int, scheme: Redundancy
    ) -> tuple[list[NodeRecord], list[NodeRecord]]:
        """Nodes for a new segment, one for each piece, in random order; and spare ones.

        Spare nodes stand in where more are silent than an upload can do without, by one.
        """
        there = self.nodes.at(placement, TAKES_PIECES)
        if len(there) < scheme.success:
            # Another process may have registered nodes since they were read.
            self.nodes.refresh()
            there = self.nodes.at(placement, TAKES_PIECES)
        if len(there) < scheme.success:
            # Rather an upload that a silent node may fail than none: states can be out of date.
            there = self.nodes.at(placement, COUNTS_AS_HEALTHY)
        if len(there) < scheme.success:
            raise FailedPrecondition(
                f"a segment needs {scheme.success} nodes, placement {placement} has {len(there)}",
                hint="Register more storage nodes or lower the redundancy.",
            )
        spare = min(scheme.total - scheme.success + 1, _SPARE_TOKENS // scheme.total)
        chosen = random.sample(there, min(scheme.total + spare, len(there)))
        return chosen[: scheme.total], chosen[scheme.total :]

    def leave_out_leaving(
        self, pieces: Sequence[tuple[int, bytes]], scheme: Redundancy
    ) -> list[tuple[int, bytes]]:
        """Pieces of a new segment without those on nodes that were asked to leave since it began.

        Otherwise a node would never be empty. FailedPrecondition when too few are left.
        """
        leaving = {each.node_id for each in self.nodes.at(0, LEAVING)}
        staying = [piece for piece in pieces if piece[1] not in leaving]
        if len(staying) < scheme.success and len(staying) < len(pieces):
            raise FailedPrecondition(
                "too many nodes of this segment were asked to leave since it was begun",
                hint="Upload it again.",
            )
        return staying


def page_limit(asked: int, most: int) -> int:
    """A page size: zero means the most there is; negative is refused."""
    if asked < 0:
        raise InvalidInput(f"limit {asked} is negative")
    return min(asked or most, most)
