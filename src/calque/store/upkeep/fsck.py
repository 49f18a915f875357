"""Is a store whole? Its rows against each other, and its pieces against its rows."""

from __future__ import annotations

from datetime import timedelta

from calque.store.embedded import EmbeddedStore
from calque.store.metabase.fsck import Finding, fsck
from calque.store.metabase.model.records import moment
from calque.store.metabase.objects.physical_segments import PhysicalRecord, physical_segments
from calque.store.nodes.check import COMMIT_WINDOW, PhysicalSegment, check_pieces
from calque.store.nodes.pieces import piece_id
from calque.store.upkeep.backup import redundancy_of


def check_store(store: EmbeddedStore, *, young: bool = False) -> list[Finding]:
    """Everything that is wrong; an empty list means whole. Nothing is changed.

    Pieces younger than the commit window may belong to uploads under way and are no orphans,
    unless ``young`` says that nothing runs.
    """
    database = store.endpoint.database
    segments = [_physical(each) for each in physical_segments(database)]
    on_nodes = check_pieces(
        segments,
        store.nodes.direct(),
        waiting=[
            (node_id, piece_id(each.root_piece_id, node_id, number))
            for each in store.endpoint.list_waiting_pieces()
            for number, node_id, _ in each.pieces
        ],
        now=moment(database.clock()),
        window=timedelta(0) if young else COMMIT_WINDOW,
    )
    return [*fsck(database), *(Finding(*each) for each in on_nodes)]


def _physical(record: PhysicalRecord) -> PhysicalSegment:
    expires = record.expires_at
    return PhysicalSegment(
        root_piece_id=record.root_piece_id,
        encrypted_size=record.encrypted_size,
        redundancy=redundancy_of(record),
        pieces=record.pieces,
        expires=None if expires is None else moment(expires),
    )
