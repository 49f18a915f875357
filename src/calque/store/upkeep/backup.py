"""A store into another folder while it is in use, and back: both are one copy of a store.

The copy is itself a store, with SQLite and its nodes in its folder unless told otherwise. Its rows
are one snapshot. Every piece that the snapshot names is kept on its node until it is copied, by a
hold that all processes of the store heed. The description is written last: until then there is no
store in the target, and a killed copy leaves nothing that could be taken for one.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from calque import faults
from calque.errors import (
    AlreadyExists,
    CalqueError,
    IntegrityError,
    InvalidInput,
    NotFound,
    Unavailable,
)
from calque.operator import Operator
from calque.operator.services.fs.errors import map_errors
from calque.store.embedded import EmbeddedStore
from calque.store.embedded.description import (
    Description,
    NodeDescription,
    describe_root,
    lock_folder,
    write_json,
)
from calque.store.embedded.store import ACCESS_FILE, STORE_FILE
from calque.store.metabase.copy_metabase import copy_metabase
from calque.store.metabase.engine.database import Database
from calque.store.metabase.model.records import moment
from calque.store.metabase.objects.hold_pieces import REFRESH_S, Hold, hold_pieces
from calque.store.metabase.objects.physical_segments import (
    PhysicalRecord,
    count_physical_segments,
    physical_segments,
)
from calque.store.nodes.erasure import Coder, Redundancy
from calque.store.nodes.node import Node
from calque.store.nodes.pieces import piece_id
from calque.store.nodes.streams import read_piece, write_piece

_AT_ONCE = 8
"""Pieces that are copied at the same time."""

_SEGMENTS_AHEAD = 4 * _AT_ONCE
"""Segments whose pieces are copied or wait for it: so many are in memory, of however many."""

Tell = Callable[[int, int], None]
"""How many segments are copied, of how many."""


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
    tell: Tell | None = None,
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
        roots = [describe_root(each, place) for each in nodes]
        description = _describe_copy(store.description, database, roots)
        return _copy_to(store, place, description, tell or (lambda _done, _all: None))


def _copy_to(
    store: EmbeddedStore, place: Path, description: Description, tell: Tell
) -> StoreCopyReport:
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
            copy_metabase(store.endpoint.database, target, lambda _: hold.refresh())
            faults.point("backup.rows")
            report = _PieceCopies(store, roots, hold).copy_all(target, tell)
        # The description last: it is what makes the folder a store.
        write_json(place / ACCESS_FILE, store.access.to_json())
        faults.point("backup.access")
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


class _PieceCopies:
    """Copies the pieces of segments, a few segments at a time."""

    def __init__(self, store: EmbeddedStore, roots: dict[bytes, Node], hold: Hold) -> None:
        self._sources = {node.id: node for node in _nodes_that_answer(store.own_nodes())}
        self._roots = roots
        self._hold = hold
        self._segments = self._pieces = self._missing = self._lost = 0

    def copy_all(self, target: Database, tell: Tell) -> StoreCopyReport:
        """The pieces of every segment in ``target``."""
        count = count_physical_segments(target)
        waiting: deque[tuple[PhysicalRecord, list[Future[bool]]]] = deque()
        with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="backup") as threads:
            for segment in physical_segments(target):
                places = [_Place(segment, number, node) for number, node in segment.pieces]
                waiting.append((segment, [threads.submit(self._copy, each) for each in places]))
                if len(waiting) == _SEGMENTS_AHEAD:
                    self._count(*waiting.popleft())
                    tell(self._segments, count)
            for each in waiting:
                self._count(*each)
        tell(self._segments, count)
        return StoreCopyReport(self._segments, self._pieces, self._missing, self._lost)

    def _count(self, segment: PhysicalRecord, copies: Sequence[Future[bool]]) -> None:
        there = sum(self._wait_for(each) for each in copies)
        self._segments += 1
        self._pieces += there
        self._missing += len(copies) - there
        self._lost += there < segment.redundancy.required
        faults.point("backup.segment")

    def _wait_for(self, copy: Future[bool]) -> bool:
        # However long one piece takes, the others must not be deleted meanwhile.
        self._hold.refresh()
        while not wait([copy], timeout=REFRESH_S).done:
            self._hold.refresh()
        return copy.result()

    def _copy(self, place: _Place) -> bool:
        return _copy_piece(place, self._sources.get(place.node_id), self._roots)


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
        chunks: Iterator[bytes] = _require_size(
            read_piece(source, place.piece, 0, place.size), place.size
        )
        until = None if expires is None else moment(expires)
        # Asked for before the other node is: a piece that is missing begins nothing there.
        chunks = chain([next(chunks)], chunks)
        write_piece(target, place.piece, chunks, until, replace=True)
    except (NotFound, Unavailable, IntegrityError):  # other pieces of the segment may do
        return False
    return True


def _require_size(chunks: Iterable[bytes], size: int) -> Iterator[bytes]:
    for chunk in chunks:
        size -= len(chunk)
        yield chunk
    if size:
        raise IntegrityError(f"{size} bytes are missing at the end of a piece")


def redundancy_of(segment: PhysicalRecord) -> Redundancy:
    """The redundancy of a row, as the nodes reckon with it."""
    return Redundancy(**segment.redundancy._asdict())
