"""Pieces on nodes against metadata: what is missing, what is damaged in size, what is orphaned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from calque.errors import CalqueError
from calque.store.nodes.erasure import Coder, Redundancy
from calque.store.nodes.node import Node, StoredPiece
from calque.store.nodes.pieces import piece_id

COMMIT_WINDOW = timedelta(hours=72)
"""A piece younger than this may belong to an upload that is still under way."""


@dataclass(frozen=True, slots=True)
class PhysicalSegment:
    """A segment that owns pieces: copies own none."""

    root_piece_id: bytes
    encrypted_size: int
    redundancy: Redundancy
    pieces: tuple[tuple[int, bytes], ...]
    """Of each piece: its number and its node's id."""
    expires: datetime | None = None


class PieceFinding(NamedTuple):
    """One thing that is wrong: a short kind, and where."""

    kind: str
    where: str


class _Expected(NamedTuple):
    node: bytes
    piece: bytes


def check_pieces(
    segments: Iterable[PhysicalSegment],
    nodes: Sequence[Node],
    *,
    waiting: Iterable[tuple[bytes, bytes]] = (),
    now: datetime,
    window: timedelta = COMMIT_WINDOW,
) -> Iterator[PieceFinding]:
    """Compare; ``waiting`` are (node, piece) pairs whose deletion is still to be done.

    Metadata is read first: a piece that comes later is young, and young pieces are no orphans.
    Pieces of a segment that has expired may be there or not. Of a node that does not answer
    that is all that is said.
    """
    expected: dict[_Expected, int] = {}
    expired: set[_Expected] = set()
    for segment in segments:
        size = Coder(segment.redundancy).piece_size(segment.encrypted_size)
        places = [
            _Expected(node, piece_id(segment.root_piece_id, node, number))
            for number, node in segment.pieces
        ]
        expected |= dict.fromkeys(places, size)
        if segment.expires is not None and segment.expires <= now:
            expired.update(places)
    # Pieces whose deletion waits are named by no row, and are no orphans either.
    known = {_Expected(*each) for each in waiting}
    reachable = {node.id for node in nodes}
    silent: set[bytes] = set()
    for node in nodes:
        try:
            there = list(node.pieces())
        except CalqueError as error:
            yield PieceFinding("node that does not answer", f"{node.name}: {error.message}")
            silent.add(node.id)
            continue
        for stored in there:
            place = _Expected(node.id, stored.piece)
            wanted = expected.pop(place, None)
            if wanted is not None:
                if wanted != stored.size:
                    yield PieceFinding("piece of the wrong size", _sizes(place, stored, wanted))
            elif place not in known and not _is_young(stored, now, window):
                yield PieceFinding("orphaned piece", _where(place))
    for place in expected.keys() - expired:
        if place.node in silent:
            continue  # said already, once for all its pieces
        kind = "missing piece" if place.node in reachable else "piece on an unknown node"
        yield PieceFinding(kind, _where(place))


def _is_young(stored: StoredPiece, now: datetime, window: timedelta) -> bool:
    return stored.written is not None and now - stored.written < window


def _where(place: _Expected) -> str:
    return f"{place.piece.hex()} on node {place.node.hex()[:12]}"


def _sizes(place: _Expected, stored: StoredPiece, size: int) -> str:
    return f"{_where(place)}: {stored.size} bytes, {size} expected"
