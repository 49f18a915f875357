"""Which nodes answer: asked one after another, and their states kept in the metabase.

A node that does not answer is silent: uploads leave it out, its pieces still count. After a day of
silence it is gone: its pieces are built anew elsewhere. One that answers again is ok again, unless
it was asked to leave, or gave wrong pieces.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta

from calque.errors import CalqueError, NotFound
from calque.store.embedded import EmbeddedStore
from calque.store.metabase.accounts.nodes import NodeRecord, Nodes, NodeState
from calque.store.nodes.node import Node

GONE_AFTER = timedelta(hours=24)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class NodeReport:
    """A node, whether it answers, and its state from now on."""

    node: str
    state: str
    answers: bool
    problem: str = ""


def check_nodes(
    store: EmbeddedStore, *, gone_after: timedelta = GONE_AFTER, gone: Collection[bytes] = ()
) -> list[NodeReport]:
    """Ask every node, and note what comes of it. ``gone``: nodes that are given up at once."""
    nodes, now = Nodes(store.endpoint.database), store.endpoint.database.clock()
    known = {each.node_id: each for each in nodes.all()}
    reports = []
    for node in store.own_nodes():
        record = known.get(node.id)
        if record is None:
            continue
        problem = _problem_of(node)
        wanted = _next_state(record, not problem, now, gone_after)
        if node.id in gone:
            wanted = "gone"
        state = record.state
        if wanted != state:
            state = _change_state(nodes, record, wanted, problem)
        reports.append(NodeReport(node.name, state, not problem, problem))
    return reports


def _change_state(nodes: Nodes, record: NodeRecord, state: NodeState, problem: str) -> str:
    """The state of a node from now on. One that was told to leave meanwhile goes on leaving: to
    ask them all takes its time."""
    if nodes.set_state(record.node_id, state, left_at=record.left_at, was=record.state):
        _log.warning("node %s is %s (was %s) %s", record.name, state, record.state, problem)
    return nodes.get(record.node_id).state


def find_node(store: EmbeddedStore, name: str) -> NodeRecord:
    """The node whose id begins with ``name``, or that lies at this address; NotFound, if none.

    A folder may be named by any path that leads there without links.
    """
    records = store.endpoint.admin.nodes()
    address = name if not name or "://" in name else os.path.abspath(name)
    found = [
        each
        for each in records
        if (name and each.node_id.hex().startswith(name.lower()))
        or name == each.address
        or address == os.path.normpath(each.address)
    ]
    if len(found) > 1:  # a new disk lies where one was that is gone
        found = [each for each in found if each.state != "gone"] or found
    if len(found) == 1:
        return found[0]
    names = ", ".join(f"{each.name} ({each.address})" for each in records)
    raise NotFound(
        f"{'several nodes are' if found else 'no node is'} called {name!r}",
        hint=f"The nodes are: {names}.",
    )


def _problem_of(node: Node) -> str:
    try:
        node.require_answer()
    except CalqueError as error:
        return error.message
    return ""


def _next_state(record: NodeRecord, answers: bool, now: int, gone_after: timedelta) -> NodeState:
    """What the answer, or the lack of one, makes of a node."""
    state: NodeState = record.state  # type: ignore[assignment]  # the metabase holds no other
    # By its amount: where the clock was put back nobody knows better.
    silent_for = abs(now - record.state_since) if state == "silent" else 0
    limit = int(gone_after.total_seconds() * 1_000_000)
    if answers and (state == "silent" or (state == "gone" and record.left_at is None)):
        return "ok"
    if not answers and state in ("ok", "silent"):
        return "gone" if silent_for >= limit or not limit else "silent"
    return state
