"""A storage node: an id, a placement, and an Operator root under which its pieces lie."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeVar

from calque.errors import CalqueError, ConditionNotMatch, InvalidInput, NotFound
from calque.operator import Operator
from calque.store.nodes.identity import Identity
from calque.store.nodes.liveness import ANSWER_WITHIN, Liveness
from calque.store.nodes.pieces import PIECES, expiry_path, piece_of_path, piece_path

T = TypeVar("T")

NODE_ID_SIZE = 32

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StoredPiece:
    """A piece as it lies on a node."""

    piece: bytes
    size: int
    written: datetime | None


class PieceHolder(Protocol):
    """What an upload and a download need of a node, wherever it is."""

    @property
    def id(self) -> bytes: ...

    @property
    def name(self) -> str:
        """How messages call the node."""

    @property
    def liveness(self) -> Liveness:
        """Whether it answers."""

    def write(
        self, piece: bytes, chunks: Iterable[bytes], expires: datetime | None, *, token: bytes = b""
    ) -> None:
        """Keep a piece; the token is the satellite's leave, for nodes that ask for it."""

    def read(
        self, piece: bytes, offset: int, length: int, *, token: bytes = b""
    ) -> Iterator[bytes]: ...

    def discard(self, piece: bytes) -> None: ...


@dataclass(frozen=True, slots=True)
class Node:
    """Keeps pieces and knows nothing of objects.

    A piece is there whole or not at all; writing it again replaces it; deleting one that is not
    there is no error. A root that is not this node's is Unavailable, whatever is asked of it.
    """

    id: bytes
    root: Operator
    placement: int = 0
    on_piece: Callable[[], None] = field(default=lambda: None, repr=False, compare=False)
    """Called for each piece that is listed."""
    identity: Identity = field(init=False, repr=False, compare=False)
    liveness: Liveness = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.id) != NODE_ID_SIZE:
            raise InvalidInput(f"a node id has {NODE_ID_SIZE} bytes, not {len(self.id)}")
        object.__setattr__(self, "identity", Identity(self.id, self.root))
        object.__setattr__(self, "liveness", Liveness(self.name))

    @property
    def name(self) -> str:
        """How messages call the node."""
        return self.id.hex()[:12]

    def write(
        self,
        piece: bytes,
        chunks: Iterable[bytes],
        expires: datetime | None,
        *,
        token: bytes = b"",
        replace: bool = True,
    ) -> None:
        """Keep a piece; its expiry is noted first, so that no piece can outlive a crash here.

        Without ``replace`` a piece that is there stays, and ConditionNotMatch says so; nor is an
        expiry noted for it, which would be a way to have it deleted.
        """
        self.liveness.require()
        self.identity.require()
        try:
            if not replace and self.root.exists(piece_path(piece)):
                raise ConditionNotMatch(f"node {self.name} has piece {piece.hex()} already")
            # The other way round, a crash in between would leave a piece that never expires.
            if expires is not None:
                self.root.write(expiry_path(piece, expires), b"")
            self.root.write(piece_path(piece), chunks, if_not_exists=not replace)
        except CalqueError:
            self.identity.doubt()
            raise
        # A disk that was unmounted meanwhile took the piece onto the bare mount point.
        self.identity.require_after_write()

    def read(
        self, piece: bytes, offset: int, length: int, *, token: bytes = b""
    ) -> Iterator[bytes]:
        """``length`` bytes of a piece; NotFound when the node does not have it."""
        self.liveness.require()
        try:
            yield from self.root.read_stream(piece_path(piece), offset=offset, length=length)
        except NotFound as error:
            raise NotFound(f"node {self.name} does not have piece {piece.hex()}") from error

    def delete(self, piece: bytes) -> None:
        """Delete a piece, which need not be there."""
        self.identity.require()
        self.root.delete(piece_path(piece))

    def discard(self, piece: bytes) -> None:
        """Delete as far as the node answers: what stays is an orphan that a sweep removes."""
        try:
            self.delete(piece)
        except CalqueError as error:
            _log.warning("node %s keeps piece %s: %s", self.name, piece.hex(), error)

    def ask(self, request: Callable[[], T]) -> T:
        """What a small request gives; TimedOut when the root does not answer it in time.

        A stalled server would otherwise cost its own timeout, once for each try: minutes.
        """
        return self.liveness.run_within(ANSWER_WITHIN, request)

    def require_answer(self) -> None:
        """Unavailable unless the root answers in time, and is this node's."""
        self.ask(self.identity.require)

    def pieces(self) -> Iterator[StoredPiece]:
        """Every piece on the node, in the order of piece ids; other files are passed over."""
        self.require_answer()
        for entry in self.root.list(PIECES):
            piece = piece_of_path(entry.path)
            self.on_piece()
            if piece is not None:
                yield StoredPiece(piece, entry.size, entry.last_modified)


class NodeDirectory:
    """The nodes that a client has met, each opened once. Safe to share between threads."""

    def __init__(self, nodes: Iterable[Node] = ()) -> None:
        self._nodes: dict[bytes, PieceHolder] = {node.id: node for node in nodes}
        self._lock = threading.Lock()

    def get(self, node_id: bytes, address: str, placement: int = 0) -> PieceHolder:
        """The node of an id; opened at its address when it is new here."""
        with self._lock:
            node = self._nodes.get(node_id)
            if node is None:
                node = self._nodes[node_id] = self.open(node_id, address, placement)
            return node

    def open(self, node_id: bytes, address: str, placement: int) -> PieceHolder:
        """A node that is new here."""
        return Node(node_id, Operator.from_uri(address), placement)

    def direct(self) -> list[Node]:
        """The nodes that are reached by their own root."""
        with self._lock:
            return [node for node in self._nodes.values() if isinstance(node, Node)]

    def close(self) -> None:
        """Let go of every root."""
        for node in self.direct():
            node.root.close()
