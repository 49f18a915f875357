"""Storage nodes as the metabase knows them: an id, an address, a placement, an alias."""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterable, Sequence
from typing import Literal, NamedTuple, get_args

from sqlalchemy import BigInteger, bindparam, func, insert, select, update

from calque.errors import IntegrityError, InvalidInput
from calque.store.metabase.engine.database import Database
from calque.store.metabase.engine.statement import Statement
from calque.store.metabase.engine.transaction import Transaction
from calque.store.metabase.model import checks as verify
from calque.store.metabase.model import packed_pieces as pieces
from calque.store.metabase.model.records import NODE_ID_SIZE, DeletedPieces, FreedSegment
from calque.store.metabase.model.schema import nodes

NodeState = Literal["ok", "silent", "failing", "exiting", "gone"]
"""``ok`` takes pieces. ``silent`` does not answer for now, ``failing`` gave wrong pieces,
``exiting`` is being emptied, ``gone`` is given up. Pieces on the last three are to be replaced."""

TAKES_PIECES = frozenset({"ok"})
COUNTS_AS_HEALTHY = frozenset({"ok", "silent"})
LEAVING = frozenset({"exiting", "gone"})
STATES_BELIEVED_S = 1.0
"""How long the states of nodes are believed before they are read again."""

_RECORD = (
    nodes.c.alias,
    nodes.c.node_id,
    nodes.c.address,
    nodes.c.placement,
    nodes.c.state,
    nodes.c.state_since,
    nodes.c.left_at,
    nodes.c.audits_good,
    nodes.c.audits_wrong,
)
ALL_NODES = Statement(
    "all nodes",
    select(*_RECORD).order_by(nodes.c.alias),
    whole_table="a satellite knows few nodes and keeps them all in memory",
)
NODE_BY_ID = Statement(
    "node by id", select(*_RECORD).where(nodes.c.node_id == bindparam("node_id"))
)
NEXT_ALIAS = Statement(
    "next alias",
    select(func.coalesce(func.max(nodes.c.alias), 0) + 1),
)
INSERT_NODE = Statement("insert a node", insert(nodes))
MOVE_NODE = Statement(
    "move a node",
    update(nodes)
    .where(nodes.c.node_id == bindparam("of_node"))
    .values(address=bindparam("new_address"), placement=bindparam("new_placement")),
)
SET_STATE = Statement(
    "set the state of a node",
    update(nodes)
    .where(nodes.c.node_id == bindparam("of_node"), nodes.c.state == bindparam("old_state"))
    .values(
        state=bindparam("new_state"),
        state_since=bindparam("since"),
        left_at=bindparam("new_left_at"),
    ),
)
COUNT_AUDITS = Statement(
    "count audits of a node",
    update(nodes)
    .where(nodes.c.node_id == bindparam("of_node"))
    .values(
        audits_good=nodes.c.audits_good + bindparam("more_good", type_=BigInteger),
        audits_wrong=nodes.c.audits_wrong + bindparam("more_wrong", type_=BigInteger),
    ),
)


class NodeRecord(NamedTuple):
    """A row of ``nodes``. ``left_at``: it was asked to leave, and is not welcome back by itself."""

    alias: int
    node_id: bytes
    address: str
    placement: int
    state: str = "ok"
    state_since: int = 0
    left_at: int | None = None
    audits_good: int = 0
    audits_wrong: int = 0

    @property
    def name(self) -> str:
        """How messages call the node."""
        return self.node_id.hex()[:12]


class Nodes:
    """The nodes of a metabase, kept in memory and read again when an alias is unknown.

    An alias is given once and never changes, so a stale memory can only miss nodes.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        # Only while both are replaced, so that they agree; reading one of them needs no lock.
        self._lock = threading.Lock()
        self._by_alias: dict[int, NodeRecord] = {}
        self._by_id: dict[bytes, NodeRecord] = {}
        self._read_at = -STATES_BELIEVED_S

    def register(self, node_id: bytes, address: str, placement: int = 0) -> NodeRecord:
        """Add a node, or change the address and placement of a known one."""
        verify.exactly(node_id, NODE_ID_SIZE, "node id")
        if not address:
            raise InvalidInput("node address is missing")

        def work(transaction: Transaction) -> NodeRecord:
            known = transaction.row(NODE_BY_ID, {"node_id": node_id})
            if known:
                record = NodeRecord(*known)
                # A store registers its nodes whenever it is opened, also on a full disk.
                if (record.address, record.placement) != (address, placement):
                    changes = {"new_address": address, "new_placement": placement}
                    transaction.run(MOVE_NODE, {"of_node": node_id, **changes})
                return record._replace(address=address, placement=placement)
            (alias,) = transaction.rows(NEXT_ALIAS, {})[0]
            record = NodeRecord(alias, node_id, address, placement)
            transaction.run(INSERT_NODE, record._asdict())
            return record

        record = self._database.write(work)
        self.refresh()
        return record

    def refresh(self) -> None:
        """Read all nodes again."""
        asked = time.monotonic()
        rows = self._database.read(lambda transaction: transaction.rows(ALL_NODES, {}))
        records = [NodeRecord(*row) for row in rows]
        with self._lock:
            self._by_alias = {record.alias: record for record in records}
            self._by_id = {record.node_id: record for record in records}
            # From before the question: what was written since may not be in the answer.
            self._read_at = asked

    def set_state(
        self,
        node_id: bytes,
        state: NodeState,
        *,
        left_at: int | None = None,
        was: str | None = None,
    ) -> bool:
        """Change a node's state; False when it has that state already, or any but ``was``."""
        if state not in get_args(NodeState):
            raise InvalidInput(f"{state!r} is no state of a node")
        old = self._node_with_id(node_id)

        def work(transaction: Transaction) -> int:
            return transaction.run(
                SET_STATE,
                {
                    "of_node": node_id,
                    "old_state": was or old.state,
                    "new_state": state,
                    "since": transaction.now,
                    "new_left_at": left_at,
                },
            )

        changed = (old.state, old.left_at) != (state, left_at) and self._database.write(work) > 0
        self.refresh()
        return changed

    def get(self, node_id: bytes) -> NodeRecord:
        """The node as it is now."""
        self.refresh()
        return self._node_with_id(node_id)

    def count_audits(self, node_id: bytes, good: int, wrong: int) -> None:
        """Add to what is known of a node's answers."""
        more = {"of_node": node_id, "more_good": good, "more_wrong": wrong}
        self._database.write(lambda transaction: transaction.run(COUNT_AUDITS, more))

    def all(self) -> Sequence[NodeRecord]:
        """Every node, in the order in which they came."""
        if not self._by_alias:
            self.refresh()
        return list(self._by_alias.values())

    def at(self, placement: int, states: Collection[str] | None = None) -> list[NodeRecord]:
        """The nodes of one placement; placement 0 means any node. With ``states`` only of those."""
        if states is not None and time.monotonic() - self._read_at >= STATES_BELIEVED_S:
            self.refresh()
        return [
            node
            for node in self.all()
            if placement in (0, node.placement) and (states is None or node.state in states)
        ]

    def pack(self, placed: Iterable[tuple[int, bytes]]) -> bytes:
        """Packed pieces from pairs of piece number and node id; unknown nodes are refused."""
        return pieces.pack(
            [(number, self._node_with_id(node_id).alias) for number, node_id in placed]
        )

    def unpack(self, packed: bytes) -> list[tuple[int, NodeRecord]]:
        """The pieces and their nodes."""
        return [(number, self._node_with_alias(alias)) for number, alias in pieces.unpack(packed)]

    def pieces_to_delete(self, segments: Iterable[FreedSegment]) -> list[DeletedPieces]:
        """What to remove from which node.

        Nothing from one that is given up: it would be waited for in vain. Should it come back, what
        it still has is garbage.
        """
        return [
            DeletedPieces(
                segment.root_piece_id,
                tuple(
                    (number, node.node_id, node.address)
                    for number, node in self.unpack(segment.alias_pieces)
                    if node.state != "gone"
                ),
            )
            for segment in segments
        ]

    def pack_deleted(self, deleted: Iterable[DeletedPieces]) -> list[FreedSegment]:
        """The reverse of :meth:`pieces_to_delete`."""
        return [
            FreedSegment(
                each.root_piece_id,
                self.pack((number, node_id) for number, node_id, _ in each.pieces),
            )
            for each in deleted
        ]

    def _node_with_id(self, node_id: bytes) -> NodeRecord:
        if node_id not in self._by_id:
            self.refresh()
        try:
            return self._by_id[node_id]
        except KeyError:
            raise InvalidInput(f"node {node_id.hex()[:16]}… is not known here") from None

    def _node_with_alias(self, alias: int) -> NodeRecord:
        if alias not in self._by_alias:
            self.refresh()
        try:
            return self._by_alias[alias]
        except KeyError:
            raise IntegrityError(f"a segment names node alias {alias}, which nobody has") from None
