"""Every segment that owns pieces: what is compared with the pieces on the nodes.

Copies own none, so each physical piece appears once. One snapshot of the whole table.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import select

from calque.store.metabase.accounts.nodes import Nodes
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.model.records import Redundancy
from calque.store.metabase.model.schema import segments

PHYSICAL_SEGMENTS = Statement(
    "fsck segments that own pieces",
    select(
        segments.c.root_piece_id,
        segments.c.encrypted_size,
        segments.c.redundancy,
        segments.c.expires_at,
        segments.c.remote_alias_pieces,
    ).where(segments.c.remote_alias_pieces.is_not(None)),
    whole_table="every piece on every node is compared with every segment",
)


class PhysicalRecord(NamedTuple):
    """A segment with pieces: each as its number and its node's id."""

    root_piece_id: bytes
    encrypted_size: int
    redundancy: Redundancy
    expires_at: int | None
    pieces: tuple[tuple[int, bytes], ...]


def physical_segments(database: Database) -> list[PhysicalRecord]:
    """All of them, as one snapshot saw them."""
    nodes = Nodes(database)
    rows = database.read(lambda transaction: transaction.rows(PHYSICAL_SEGMENTS, {}))
    return [
        PhysicalRecord(
            root,
            size,
            Redundancy.decode(redundancy),
            expires_at,
            tuple((number, node.node_id) for number, node in nodes.unpack(packed)),
        )
        for root, size, redundancy, expires_at, packed in rows
    ]
