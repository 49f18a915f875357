"""A store into another folder while it is in use, and back: both are one copy of a store.

The copy is itself a store, with SQLite and its nodes in its folder unless told otherwise. Its rows
are one snapshot. Every piece that the snapshot names is kept on its node until it is copied, by a
hold that all processes of the store heed. The description is written last: until then there is no
store in the target, and a killed copy leaves nothing that could be taken for one.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from calque.errors import AlreadyExists, CalqueError, InvalidInput, NotFound, Unavailable
from calque.operator import Operator
from calque.operator.services.fs.errors import map_errors
from calque.store.embedded import EmbeddedStore
from calque.store.embedded.description import (
    Description,
    NodeDescription,
    lock_folder,
    write_json,
)
from calque.store.embedded.store import ACCESS_FILE, STORE_FILE
from calque.store.metabase.copy_metabase import copy_metabase
from calque.store.metabase.engine.database import Database
from calque.store.metabase.model.records import moment
from calque.store.metabase.objects.hold_pieces import Hold, hold_pieces
from calque.store.metabase.objects.physical_segments import PhysicalRecord, physical_segments
from calque.store.nodes.erasure import Coder, Redundancy
from calque.store.nodes.node import Node
from calque.store.nodes.pieces import piece_id, piece_path

_AT_ONCE = 8
"""Pieces that are copied at the same time."""


@dataclass(frozen=True, slots=True)
class StoreCopyReport:
    """What a backup or a restore copied."""

    segments: int
    pieces: int
    missing_pieces: int
    lost_segments: int
    """Segments of which fewer pieces are left than are needed to read them."""


class _Place(NamedTuple):
    segment: PhysicalRecord
    number: int
    node_id: bytes

    @property
    def piece(self) -> bytes:
        return piece_id(self.segment.root_piece_id, self.node_id, self.number)

    @property
    def size(self) -> int:
        return Coder(redundancy_of(self.segment)).piece_size(self.segment.encrypted_size)


def copy_store(
    store: EmbeddedStore,
    folder: str | os.PathLike[str],
    *,
    database: str | None = None,
    nodes: Sequence[str] = (),
) -> StoreCopyReport:
    """Copy a store, which may be in use, to a folder that holds nothing yet.

    ``database`` (a URL) and ``nodes`` (as many roots as the store has) say where the copy lives,
    by default in the folder. Pieces that are missing or cut short are counted and left out.
    """
    if nodes and len(nodes) != len(store.description.nodes):
        raise InvalidInput(
            f"the store has {len(store.description.nodes)} nodes, {len(nodes)} roots are named"
        )
    place = Path(folder).absolute()
    with map_errors(str(place)):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    with lock_folder(place):
        if any(entry.name != ".lock" for entry in place.iterdir()):
            raise AlreadyExists(f"{place} is not empty", hint="Name a folder that is new or empty.")
        return _copy_to(store, place, _describe_copy(store.description, database, nodes))


def _copy_to(store: EmbeddedStore, place: Path, description: Description) -> StoreCopyReport:
    roots = {
        each.id: Node(each.id, Operator.from_uri(each.address_in(place)), each.placement)
        for each in description.nodes
    }
    for node in roots.values():
        node.ask(node.identity.write)
    target = Database.open(description.database_in(place))
    try:
        # Held before the rows are read: a piece that is freed in between would be missing.
        with hold_pieces(store.endpoint.database) as hold:
            copy_metabase(store.endpoint.database, target)
            report = _copy_pieces(store, physical_segments(target), roots, hold)
        # The description last: it is what makes the folder a store.
        write_json(place / ACCESS_FILE, store.access.to_json())
        write_json(place / STORE_FILE, description.to_json())
    finally:
        target.close()
        for node in roots.values():
            node.root.close()
    return report


def _describe_copy(old: Description, database: str | None, nodes: Sequence[str]) -> Description:
    addresses = nodes or [f"nodes/{number}" for number in range(len(old.nodes))]
    return Description(
        nodes=tuple(
            NodeDescription(each.id, address, each.placement)
            for each, address in zip(old.nodes, addresses, strict=True)
        ),
        redundancy=old.redundancy,
        database=database,
        identified=True,
    )


def _copy_pieces(
    store: EmbeddedStore, segments: Sequence[PhysicalRecord], roots: dict[bytes, Node], hold: Hold
) -> StoreCopyReport:
    sources = {node.id: node for node in _nodes_that_answer(store.nodes.direct())}
    places = [_Place(each, number, node) for each in segments for number, node in each.pieces]
    copied: Counter[bytes] = Counter()
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="backup") as threads:
        done = threads.map(
            lambda place: _copy_piece(place, sources.get(place.node_id), roots), places
        )
        for place, there in zip(places, done, strict=True):
            copied[place.segment.root_piece_id] += there
            hold.refresh()
    return StoreCopyReport(
        segments=len(segments),
        pieces=copied.total(),
        missing_pieces=len(places) - copied.total(),
        lost_segments=sum(
            copied[each.root_piece_id] < each.redundancy.required for each in segments
        ),
    )


def _nodes_that_answer(nodes: Iterable[Node]) -> Iterator[Node]:
    for node in nodes:
        try:
            node.require_answer()
        except CalqueError:
            continue
        yield node


def _copy_piece(place: _Place, source: Node | None, roots: dict[bytes, Node]) -> bool:
    """Whether the piece is in the copy, whole."""
    target = roots.get(place.node_id)
    if source is None or target is None:
        return False
    expires = place.segment.expires_at
    try:
        chunks = source.root.read_stream(piece_path(place.piece))
        target.write(place.piece, chunks, None if expires is None else moment(expires))
        if target.root.stat(piece_path(place.piece)).size == place.size:
            return True
        target.delete(place.piece)
    except (NotFound, Unavailable):  # other pieces of the segment may do
        pass
    return False


def redundancy_of(segment: PhysicalRecord) -> Redundancy:
    """The redundancy of a row, as the nodes reckon with it."""
    return Redundancy(**segment.redundancy._asdict())
