"""Every segment that owns pieces: what is compared with the pieces on the nodes.

Copies own none, so each physical piece appears once. One snapshot of the whole table.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.exc import DBAPIError

from calque.store.metabase.accounts.nodes import Nodes
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.errors import database_error
from calque.store.metabase.model.records import Redundancy
from calque.store.metabase.model.schema import segments

_ROWS = 1000
"""Rows in memory at a time."""

_PHYSICAL = select(
    segments.c.root_piece_id,
    segments.c.encrypted_size,
    segments.c.redundancy,
    segments.c.expires_at,
    segments.c.remote_alias_pieces,
).where(segments.c.remote_alias_pieces.is_not(None))


class PhysicalRecord(NamedTuple):
    """A segment with pieces: each as its number and its node's id."""

    root_piece_id: bytes
    encrypted_size: int
    redundancy: Redundancy
    expires_at: int | None
    pieces: tuple[tuple[int, bytes], ...]


def physical_segments(database: Database) -> Iterator[PhysicalRecord]:
    """All of them, as one snapshot saw them: a few in memory at a time, a connection meanwhile."""
    nodes = Nodes(database)
    try:
        with database.engine.connect() as connection:
            reading = connection.execution_options(stream_results=True)
            for root, size, redundancy, expires_at, packed in reading.execute(_PHYSICAL).yield_per(
                _ROWS
            ):
                yield PhysicalRecord(
                    root,
                    size,
                    Redundancy.decode(redundancy),
                    expires_at,
                    tuple((number, node.node_id) for number, node in nodes.unpack(packed)),
                )
    except DBAPIError as error:
        raise database_error(error.orig or error) from error


def count_physical_segments(database: Database) -> int:
    """How many there are now."""
    try:
        with database.engine.connect() as connection:
            counted = connection.execute(select(func.count()).select_from(_PHYSICAL.subquery()))
            return int(counted.scalar_one())
    except DBAPIError as error:
        raise database_error(error.orig or error) from error
