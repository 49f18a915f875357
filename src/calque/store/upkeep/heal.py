"""Build pieces of a segment anew, from its other pieces alone: nobody's key is needed.

Any ``required`` good pieces give the missing ones, share by share, which are put onto other nodes.
A piece that is there already is never written over: it may be another process's. So each process
removes only what it wrote itself.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from functools import partial
from itertools import chain

from calque import faults
from calque.errors import CalqueError, IntegrityError, InvalidInput
from calque.store.embedded import EmbeddedStore
from calque.store.metabase.accounts.nodes import (
    COUNTS_AS_HEALTHY,
    LEAVING,
    TAKES_PIECES,
    NodeRecord,
    Nodes,
)
from calque.store.metabase.model.records import Redundancy as StoredRedundancy
from calque.store.metabase.model.records import moment
from calque.store.metabase.upkeep.replace_pieces import Family, replace_pieces
from calque.store.nodes.download import Source, download_shares
from calque.store.nodes.erasure import Coder, Redundancy
from calque.store.nodes.liveness import Liveness
from calque.store.nodes.node import Node
from calque.store.nodes.pieces import piece_id, piece_path
from calque.store.nodes.streams import read_piece, write_piece
from calque.store.nodes.units import Stripes, seal_units, shares_of
from calque.store.nodes.upload import Patience, Target, discard_pieces, upload_shares

_PATIENCE = Patience(least=10.0, share=2.0)
"""One new piece is better than none, but a slow node is waited for: nobody else waits here."""

_log = logging.getLogger(__name__)


class Healed(Enum):
    """What came of one segment."""

    DONE = "done"
    NOTHING = "nothing to do"
    CHANGED = "changed meanwhile"
    NO_ROOM = "no node left to take a piece"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Placed:
    """A piece that the segment's list names."""

    number: int
    record: NodeRecord


class Healer:
    """Heals segments of one store, by several threads, and counts the pieces that it wrote."""

    def __init__(self, store: EmbeddedStore) -> None:
        self._store = store
        self._database = store.endpoint.database
        self._nodes = Nodes(self._database)
        self._lock = threading.Lock()
        self.pieces_written = 0

    def heal(self, family: Family, bad: Collection[int] = ()) -> Healed:
        """Bring a segment back to all its pieces; pieces with a number in ``bad`` are replaced."""
        segment = self._read(family)
        if segment is None:
            return Healed.FAILED
        usable = [
            each
            for each in segment.placed
            if each.record.state in COUNTS_AS_HEALTHY and each.number not in bad
        ]
        held = {each.number for each in usable}
        missing = [n for n in range(segment.redundancy.total) if n not in held]
        if not missing:
            return Healed.NOTHING
        # An exiting node still reads, a failing one may: shares have hashes. A node that is given
        # up comes last, since it may keep us waiting.
        spare = sorted(
            (each for each in segment.placed if each not in usable and each.number not in bad),
            key=lambda each: each.record.state == "gone",
        )
        return self._rebuild(segment, missing, [*usable, *spare])

    def move(self, family: Family, leaving: bytes) -> Healed:
        """Move the piece on one node to another: read from it, or else built from the others."""
        segment = self._read(family)
        if segment is None:
            return Healed.FAILED
        going = [each for each in segment.placed if each.record.node_id == leaving]
        if not going:
            return Healed.NOTHING
        staying = [each for each in segment.placed if each not in going]
        for each in going:
            done = self._move_piece(segment, each)
            if done is not Healed.FAILED:
                return done
        return self._rebuild(segment, [each.number for each in going], staying)

    def _read(self, family: Family) -> _Segment | None:
        """The segment; None where its row is damaged, so that others are healed all the same."""
        try:
            return _Segment.of(family, self._nodes)
        except (IntegrityError, InvalidInput) as error:
            row = family.segment
            _log.warning("segment %s/%d: %s", row.stream_id.hex(), row.position, error)
            return None

    def _move_piece(self, segment: _Segment, going: Placed) -> Healed:
        taker, node = next(self._free_nodes(segment), None), self._node(going.record)
        if taker is None or node is None:
            return Healed.NO_ROOM if taker is None else Healed.FAILED
        stripes = segment.stripes
        old = piece_id(segment.root, node.id, going.number)
        new = piece_id(segment.root, taker.id, going.number)
        try:
            shares = shares_of(old, read_piece(node, old, *stripes.piece_range), stripes)
            write_piece(taker, new, seal_units(new, shares), segment.expires)
        except CalqueError as error:
            _log.warning("piece %s is not moved as it is: %s", old.hex(), error)
            return Healed.FAILED
        target = Target(going.number, _NewPieces(taker))
        return self._commit(segment, self._leave_out_leaving(segment, [target]))

    def _rebuild(
        self, segment: _Segment, missing: Sequence[int], placed: Sequence[Placed]
    ) -> Healed:
        """Make the ``missing`` pieces out of those that are ``placed``."""
        targets = self._targets(segment, missing)
        if not targets:
            return Healed.NO_ROOM
        made = [each.number for each in targets]
        found = [(each.number, self._node(each.record)) for each in placed]
        sources = [Source(number, node) for number, node in found if node is not None]
        try:
            with closing(download_shares(sources, segment.stripes, segment.root)) as stripes:
                held = upload_shares(
                    targets,
                    segment.root,
                    (segment.coder.rebuild(shares, made) for shares in stripes),
                    success=1,
                    expires=segment.expires,
                    patience=_PATIENCE,
                )
        except CalqueError as error:
            notes = "; ".join(getattr(error, "__notes__", ()))
            _log.warning("segment %s is not repaired: %s %s", segment.name, error, notes)
            return Healed.FAILED
        held = self._leave_out_leaving(segment, held)
        done = self._commit(segment, held)
        return Healed.NO_ROOM if done is Healed.DONE and len(held) < len(missing) else done

    def _leave_out_leaving(self, segment: _Segment, held: Sequence[Target]) -> list[Target]:
        """Those whose nodes were not asked to leave since they were chosen.

        A node that leaves waits for nobody who began before: what is named there now would be
        lost when it is switched off.
        """
        faults.point("repair.written")
        self._nodes.refresh()
        leaving = {each.node_id for each in self._nodes.all() if each.state in LEAVING}
        discard_pieces([each for each in held if each.node.id in leaving], segment.root)
        return [each for each in held if each.node.id not in leaving]

    def _commit(self, segment: _Segment, held: Sequence[Target]) -> Healed:
        if not held:
            return Healed.FAILED
        new = {each.number: each.node.id for each in held}
        # A doubtful piece that could not be replaced stays in the list: it is better than none.
        old = {each.number: each.record.node_id for each in segment.placed}
        packed = self._nodes.pack((old | new).items())
        if not replace_pieces(self._database, segment.family, packed):
            # Nobody else can have written these: a piece that is there is never written over.
            discard_pieces(held, segment.root)
            return Healed.CHANGED
        with self._lock:
            self.pieces_written += len(held)
        faults.point("repair.replaced")
        return Healed.DONE

    def _targets(self, segment: _Segment, missing: Sequence[int]) -> list[Target]:
        """A node of its own for each missing piece, as far as there are any that answer.

        Where a killed repair has left that very piece it stays until it is collected, so another
        node comes first.
        """
        free, passed, targets = self._free_nodes(segment), list[Node](), list[Target]()
        for number in missing:
            for node in chain(tuple(passed), free):
                if not _has(node, piece_id(segment.root, node.id, number)):
                    break
                if node not in passed:
                    passed.append(node)
            else:
                if not passed:
                    break
                node = passed[0]
            passed = [each for each in passed if each is not node]
            targets.append(Target(number, _NewPieces(node)))
        return targets

    def _free_nodes(self, segment: _Segment) -> Iterator[Node]:
        """Nodes that answer and have no piece of the segment, in no order."""
        # Also not where a piece is that goes: its name could be the new one's.
        taken = {each.record.node_id for each in segment.placed}
        free = [
            node
            for each in self._nodes.at(segment.placement, TAKES_PIECES)
            if each.node_id not in taken and (node := self._node(each)) is not None
        ]
        random.shuffle(free)
        return (node for node in free if _answers(node))

    def _node(self, record: NodeRecord) -> Node | None:
        found = self._store.nodes.get(record.node_id, record.address, record.placement)
        return found if isinstance(found, Node) else None


@dataclass(frozen=True, slots=True)
class _Segment:
    """A segment as the nodes reckon with it."""

    family: Family
    placed: tuple[Placed, ...]
    redundancy: Redundancy
    coder: Coder
    expires: datetime | None

    @classmethod
    def of(cls, family: Family, nodes: Nodes) -> _Segment:
        row = family.segment.check()
        nodes.refresh()
        redundancy = Redundancy(**StoredRedundancy.decode(row.redundancy)._asdict())
        return cls(
            family,
            tuple(Placed(number, record) for number, record in nodes.unpack(row.alias_pieces)),
            redundancy,
            Coder(redundancy),
            None if row.expires_at is None else moment(row.expires_at),
        )

    @property
    def root(self) -> bytes:
        return self.family.segment.root_piece_id

    @property
    def placement(self) -> int:
        return self.family.segment.placement

    @property
    def name(self) -> str:
        return f"{self.family.segment.stream_id.hex()}/{self.family.segment.position}"

    @property
    def stripes(self) -> Stripes:
        size = self.family.segment.encrypted_size
        return Stripes.of_range(self.coder, size, 0, size)


@dataclass(frozen=True, slots=True)
class _NewPieces:
    """A node on which nothing is written over."""

    node: Node = field(repr=False)

    @property
    def id(self) -> bytes:
        return self.node.id

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def liveness(self) -> Liveness:
        return self.node.liveness

    def write(
        self, piece: bytes, chunks: Iterable[bytes], expires: datetime | None, *, token: bytes = b""
    ) -> None:
        self.node.write(piece, chunks, expires, replace=False)

    def read(
        self, piece: bytes, offset: int, length: int, *, token: bytes = b""
    ) -> Iterator[bytes]:
        return self.node.read(piece, offset, length)

    def discard(self, piece: bytes) -> None:
        self.node.discard(piece)


def _has(node: Node, piece: bytes) -> bool:
    try:
        return node.ask(partial(node.root.exists, piece_path(piece)))
    except CalqueError:
        return False  # writing will tell


def _answers(node: Node) -> bool:
    try:
        node.ask(partial(node.identity.require))
    except CalqueError:
        return False
    return True
